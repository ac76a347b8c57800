// Reads object headers of versions 1 and 2, with their continuation blocks.
#include "weights/hdf5/object_header.h"

#include <deque>
#include <utility>

namespace finetune::hdf5 {
namespace {

constexpr const char* kHeader = "object header";
constexpr size_t kMostBlocks = 4096;
constexpr uint8_t kShared = 0x02;

class HeaderReader {
 public:
  explicit HeaderReader(Bytes& bytes) : bytes_(bytes) {}

  std::vector<Message> read(uint64_t address) {
    std::string signature = bytes_.structure(address, 4, kHeader);
    if (signature == "OHDR") {
      read_new(address, std::move(signature));
    } else {
      read_old(address, std::move(signature));
    }
    return std::move(messages_);
  }

 private:
  struct Block {
    uint64_t address, size;
  };

  // Version 1: a prefix, then messages that are padded to 8 bytes.
  void read_old(uint64_t address, std::string front) {
    constexpr uint64_t kPrefix = 16;
    const std::string prefix = bytes_.structure(address, kPrefix, kHeader, std::move(front));
    Cursor at(prefix, bytes_.widths(), kHeader);
    if (at.u8() != 1) throw fault("its ", kHeader, " is damaged");
    at.skip(1 + 2 + 4);  // counts of messages and references
    take_old({address + kPrefix, at.u32()});
    for (size_t count = 0; !continuations_.empty(); ++count) take_old(next_block(count));
  }

  void take_old(Block block) {
    constexpr size_t kMessagePrefix = 8;
    const std::string messages = bytes_.structure(block.address, block.size, kHeader);
    Cursor at(messages, bytes_.widths(), kHeader);
    while (at.left() >= kMessagePrefix) {
      const uint16_t type = at.u16(), size = at.u16();
      const uint8_t flags = at.u8();
      at.skip(3);
      add(type, flags, at.take(size));
    }
  }

  // Version 2: each block has a signature and a checksum.
  void read_new(uint64_t address, std::string front) {
    constexpr uint64_t kFixed = 6, kChecksum = 4;
    constexpr uint8_t kTimes = 0x20, kLimits = 0x10, kOrder = 0x04;
    front = bytes_.structure(address, kFixed, kHeader, std::move(front));
    Cursor at(front, bytes_.widths(), kHeader);
    at.skip(4);
    at.expect_version(2);
    const uint8_t flags = at.u8();
    has_order_ = flags & kOrder;
    const uint64_t before = kFixed + (flags & kTimes ? 16 : 0) + (flags & kLimits ? 4 : 0);
    const size_t width = size_t{1} << (flags & 3);
    front = bytes_.structure(address, before + width, kHeader, std::move(front));
    Cursor size(front, bytes_.widths(), kHeader);
    size.skip(before);
    const uint64_t content = size.number(width);
    if (content > bytes_.size()) throw fault("its ", kHeader, " lies outside the file");
    const uint64_t prefix = before + width;
    take_new({address, prefix + content + kChecksum}, "OHDR", prefix, std::move(front));
    for (size_t count = 0; !continuations_.empty(); ++count) {
      take_new(next_block(count), "OCHK", 4);
    }
  }

  void take_new(Block block, std::string_view signature, uint64_t prefix, std::string front = {}) {
    const size_t message_prefix = has_order_ ? 6 : 4;
    const std::string messages =
        bytes_.sealed(block.address, block.size, signature, kHeader, std::move(front));
    Cursor at(messages, bytes_.widths(), kHeader);
    at.skip(prefix);
    while (at.left() >= message_prefix) {  // a shorter rest is a gap
      const uint8_t type = at.u8();
      const uint16_t size = at.u16();
      const uint8_t flags = at.u8();
      at.skip(message_prefix - 4);
      add(type, flags, at.take(size));
    }
  }

  Block next_block(size_t count) {
    if (count == kMostBlocks) throw fault("its ", kHeader, " has too many parts");
    const Block block = continuations_.front();
    continuations_.pop_front();
    return block;
  }

  void add(uint16_t type, uint8_t flags, std::string_view body) {
    constexpr uint16_t kBogus = 0x09, kLast = uint16_t(MessageType::cache_image);
    if (type > kLast || type == kBogus) {
      throw fault("its ", kHeader, " has a message of type ", type, ", which is not known here");
    }
    const bool shared = flags & kShared;
    if (MessageType(type) == MessageType::nothing) return;
    if (MessageType(type) != MessageType::continuation) {
      messages_.push_back({MessageType(type), shared, std::string(body)});
      return;
    }
    Cursor at(body, bytes_.widths(), kHeader);
    const uint64_t address = at.address();
    continuations_.push_back({address, at.length()});
  }

  Bytes& bytes_;
  bool has_order_ = false;
  std::vector<Message> messages_;
  std::deque<Block> continuations_;
};

}  // namespace

std::vector<Message> read_object_header(Bytes& bytes, uint64_t address) {
  return HeaderReader(bytes).read(address);
}

const Message* find_message(const std::vector<Message>& messages, MessageType type) {
  const Message* found = nullptr;
  for (const Message& message : messages) {
    if (message.type != type) continue;
    if (found) throw fault("its ", kHeader, " repeats a message that may occur only once");
    found = &message;
  }
  if (found && found->shared) {
    throw fault("its ", kHeader, " refers to a shared or committed part, which is not read");
  }
  return found;
}

}  // namespace finetune::hdf5

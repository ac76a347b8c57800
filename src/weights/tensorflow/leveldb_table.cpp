// Reads the blocks of a LevelDB table, checking every bound and checksum.
#include "weights/tensorflow/leveldb_table.h"

#include <cstring>

#include "core/error.h"
#include "weights/tensorflow/crc32c.h"
#include "weights/tensorflow/protobuf.h"

namespace finetune {
namespace {

constexpr uint64_t kMagic = 0xdb4775248b80fb57;
constexpr size_t kFooter = 48;
constexpr size_t kTrailer = 5;             // compression type, masked CRC-32C
constexpr size_t kLongestKey = 64 * 1024;  // bounds memory: prefix compression lets keys grow
constexpr size_t kMostKeyBytes = size_t{64} << 20;

class TableReader {
 public:
  TableReader(const std::string& file, std::string_view bytes) : file_(file), bytes_(bytes) {}

  std::vector<TableEntry> read() {
    if (bytes_.size() < kFooter || load<uint64_t>(bytes_.substr(bytes_.size() - 8)) != kMagic) {
      throw fault("is not the index of a TensorFlow checkpoint (truncated?)");
    }
    std::string_view footer = bytes_.substr(bytes_.size() - kFooter);
    handle(footer);  // skip the metaindex, which is empty in these files
    std::vector<TableEntry> blocks, entries;
    read_block(handle(footer), blocks);
    for (const TableEntry& index : blocks) {
      std::string_view value = index.value;
      read_block(handle(value), entries);
    }
    return entries;
  }

 private:
  struct Handle {
    uint64_t offset = 0;
    uint64_t size = 0;
  };

  template <typename... Parts>
  Error fault(const Parts&... parts) const {
    return model_error(file_, ": ", parts...);
  }

  template <typename T>
  static T load(std::string_view from) {
    T value;
    std::memcpy(&value, from.data(), sizeof value);
    return value;
  }

  uint64_t varint(std::string_view& bytes) const {
    std::optional<uint64_t> value = take_varint(bytes);
    if (!value) throw fault("its table is damaged");
    return *value;
  }

  Handle handle(std::string_view& bytes) const {
    uint64_t offset = varint(bytes);
    return {offset, varint(bytes)};
  }

  void read_block(Handle at, std::vector<TableEntry>& entries) {
    if (at.offset > bytes_.size() || at.size > bytes_.size() - at.offset ||
        bytes_.size() - at.offset - at.size < kTrailer) {
      throw fault("a block of its table lies outside the file (truncated?)");
    }
    block_bytes_ += at.size;
    if (block_bytes_ > bytes_.size()) throw fault("its table names blocks twice");
    std::string_view block = bytes_.substr(at.offset, at.size);
    std::string_view trailer = bytes_.substr(at.offset + at.size, kTrailer);
    auto* data = reinterpret_cast<const uint8_t*>(block.data());
    if (masked_crc32c(data, at.size + 1) != load<uint32_t>(trailer.substr(1))) {
      throw fault("a block of its table does not match its checksum: the file is damaged");
    }
    if (trailer[0] != 0) {
      throw fault("its table is compressed (type ", int(trailer[0]),
                  "): only uncompressed checkpoint indexes, as TensorFlow writes them, are read");
    }
    if (block.size() < 4) throw fault("its table is damaged");
    uint64_t restarts = load<uint32_t>(block.substr(block.size() - 4));
    if (restarts > (block.size() - 4) / 4) throw fault("its table is damaged");
    block.remove_suffix(4 + 4 * restarts);
    read_entries(block, entries);
  }

  // Keys are prefix-compressed against the key before.
  void read_entries(std::string_view block, std::vector<TableEntry>& entries) {
    std::string key;
    while (!block.empty()) {
      uint64_t shared = varint(block), unshared = varint(block), length = varint(block);
      if (shared > key.size() || unshared > block.size() || length > block.size() - unshared ||
          shared + unshared > kLongestKey) {
        throw fault("its table is damaged");
      }
      key.resize(shared);
      key.append(block.substr(0, unshared));
      key_bytes_ += key.size() + sizeof(TableEntry);
      if (key_bytes_ > kMostKeyBytes) throw fault("its table has more keys than a model needs");
      entries.push_back({key, block.substr(unshared, length)});
      block.remove_prefix(unshared + length);
    }
  }

  const std::string& file_;
  std::string_view bytes_;
  size_t key_bytes_ = 0;
  uint64_t block_bytes_ = 0;  // total of the blocks read so far; no block is read twice
};

}  // namespace

std::vector<TableEntry> read_table(const std::string& file, std::string_view bytes) {
  return TableReader(file, bytes).read();
}

}  // namespace finetune

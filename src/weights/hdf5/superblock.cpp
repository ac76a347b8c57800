// Reads superblocks of versions 0 to 3, also behind a user block.
#include "weights/hdf5/superblock.h"

#include <optional>
#include <utility>

#include "weights/hdf5/object_header.h"

namespace finetune::hdf5 {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kSignature = "\x89HDF\r\n\x1a\n"sv;
constexpr const char* kName = "superblock";
constexpr uint64_t kVersionEnd = 9;  // signature and version

// The fields that all versions share.
struct Superblock {
  Widths widths;
  uint64_t base = 0, end = 0, root = 0;
  uint64_t extension = kUndefined;
};

std::optional<uint64_t> find_signature(const Bytes& bytes) {
  std::string found(kSignature.size(), '\0');
  for (uint64_t at = 0; at < bytes.size(); at = at == 0 ? 512 : 2 * at) {
    if (bytes.size() - at < kVersionEnd) break;
    bytes.read(at, found.size(), found.data());
    if (found == kSignature) return at;
  }
  return std::nullopt;
}

Widths read_widths(Cursor& at) {
  Widths widths;
  widths.address = at.u8();
  widths.length = at.u8();
  for (size_t width : {widths.address, widths.length}) {
    if (width != 4 && width != 8) throw fault("has addresses of ", width, " bytes");
  }
  return widths;
}

// Versions 0 and 1 contain the root group's symbol table entry.
Superblock read_old(Bytes& bytes, uint8_t version, std::string start) {
  constexpr uint64_t kBeforeWidths = 13, kBetween = 1 + 2 + 2 + 4, kOfVersion1 = 4;
  std::string beginning = bytes.structure(0, kBeforeWidths + 2, kName, std::move(start));
  Cursor front(beginning, {}, kName);
  front.skip(kBeforeWidths);
  Superblock block;
  block.widths = read_widths(front);
  const uint64_t skip = kBeforeWidths + 2 + kBetween + (version == 1 ? kOfVersion1 : 0);
  const std::string whole =
      bytes.structure(0, skip + 6 * block.widths.address, kName, std::move(beginning));
  Cursor at(whole, block.widths, kName);
  at.skip(skip);
  block.base = at.address();
  at.address();  // of free space
  block.end = at.address();
  if (at.address() != kUndefined) {
    throw fault("is one of several files, or was written through a driver, which is not read");
  }
  at.address();  // of the root group's name
  block.root = at.address();
  return block;
}

// Versions 2 and 3.
Superblock read_new(Bytes& bytes, uint8_t version, std::string start) {
  constexpr uint64_t kFixed = 12, kChecksum = 4;
  std::string beginning = bytes.structure(0, kFixed, kName, std::move(start));
  Cursor front(beginning, {}, kName);
  front.skip(kVersionEnd);
  Superblock block;
  block.widths = read_widths(front);
  const bool being_written = front.u8() & 1;
  if (version == 3 && being_written) throw fault("was not closed by the program that wrote it");
  const uint64_t size = kFixed + 4 * block.widths.address + kChecksum;
  const std::string whole = bytes.sealed(0, size, kSignature, kName, std::move(beginning));
  Cursor at(whole, block.widths, kName);
  at.skip(kFixed);
  block.base = at.address();
  block.extension = at.address();
  block.end = at.address();
  block.root = at.address();
  return block;
}

// Refuses extensions that change the meaning of addresses.
void check_extension(Bytes& bytes, uint64_t address) {
  for (const Message& message : read_object_header(bytes, address)) {
    if (message.type == MessageType::driver) {
      throw fault("was written through a driver, which is not read");
    }
    if (message.type == MessageType::cache_image) {
      throw fault("has an image of its writer's cache, which is not read");
    }
  }
}

}  // namespace

uint64_t read_superblock(Bytes& bytes) {
  const std::optional<uint64_t> start = find_signature(bytes);
  if (!start) throw fault("is not an HDF5 file");
  bytes.set_layout(*start, {});
  std::string beginning = bytes.structure(0, kVersionEnd, kName);
  const uint8_t version = uint8_t(beginning.back());
  if (version > 3) throw fault("is HDF5 of superblock version ", version, ", which is not read");
  const Superblock block = version < 2 ? read_old(bytes, version, std::move(beginning))
                                       : read_new(bytes, version, std::move(beginning));
  bytes.set_layout(*start, block.widths);
  // The end is relative to the file's beginning as written; a user block may have been added or
  // removed.
  if (block.end < block.base || block.end - block.base > bytes.size() - *start) {
    throw fault("is a truncated file: ", bytes.size(), " bytes, its end is at ", block.end);
  }
  if (block.extension != kUndefined) check_extension(bytes, block.extension);
  return block.root;
}

}  // namespace finetune::hdf5

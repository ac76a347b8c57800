// Writes and verifies the seal: a file's size and the SHA-256 over its blocks' SHA-256.
#include "train/checkpoint/sealed_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/files/descriptor.h"
#include "core/files/file_kind.h"
#include "core/sha256.h"
#include "core/threads/parallel.h"
#include "weights/tensorflow/crc32c.h"

namespace finetune {
namespace {

constexpr uint64_t kBlock = 1 << 20;
constexpr size_t kSealedPiece = 1 << 16;
constexpr std::string_view kTitle = "finetune checkpoint, format 1\n";

class SealedFile {
 public:
  SealedFile(const std::filesystem::path& path, int flags)
      : path_(path.string()), descriptor_(::open(path.c_str(), flags | O_NONBLOCK | O_CLOEXEC)) {
    if (descriptor_.number() >= 0) return;
    if (flags != O_RDONLY) throw write_failure(path_, errno);
    throw system_failure(path_, errno, ExitCode::model);
  }

  uint64_t size() const {
    struct stat info {};
    if (::fstat(descriptor_.number(), &info) != 0)
      throw system_failure(path_, errno, ExitCode::model);
    if (!S_ISREG(info.st_mode)) throw model_error(path_, ": is not a file");
    return uint64_t(info.st_size);
  }

  void read(char* out, size_t count, uint64_t offset) const {
    while (count > 0) {
      ssize_t got = ::pread(descriptor_.number(), out, count, off_t(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw system_failure(path_, errno, ExitCode::model, "cannot be read: ");
      if (got == 0) throw model_error(path_, ": became shorter while it was read");
      out += got;
      offset += uint64_t(got);
      count -= size_t(got);
    }
  }

  void write(std::string_view text, uint64_t offset) const {
    while (!text.empty()) {
      ssize_t count = ::pwrite(descriptor_.number(), text.data(), text.size(), off_t(offset));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) throw write_failure(path_, count < 0 ? errno : ENOSPC);
      text.remove_prefix(size_t(count));
      offset += uint64_t(count);
    }
  }

  void close() {
    if (descriptor_.close() != 0) throw write_failure(path_, errno);
  }

 private:
  std::string path_;
  Descriptor descriptor_;
};

// The part of a block that belongs to one FilePart.
struct PartOfBlock {
  size_t part;
  uint64_t bytes;
  uint32_t crc32c;
};

// Adds the bytes at file offset `at` to the parts that they belong to, from the block's last on.
void add_parts(std::span<const FilePart> parts, const char* data, size_t count, uint64_t at,
               std::vector<PartOfBlock>& block) {
  size_t i = block.empty() ? size_t(std::upper_bound(parts.begin(), parts.end(), at,
                                                     [](uint64_t offset, const FilePart& part) {
                                                       return offset < part.end;
                                                     }) -
                                    parts.begin())
                           : block.back().part;
  for (; i < parts.size() && parts[i].begin < at + count; ++i) {
    const uint64_t begin = std::max(at, parts[i].begin), end = std::min(at + count, parts[i].end);
    if (begin >= end) continue;
    if (block.empty() || block.back().part != i) block.push_back({i, 0, 0});
    PartOfBlock& own = block.back();
    own.crc32c = crc32c(reinterpret_cast<const uint8_t*>(data) + (begin - at), size_t(end - begin),
                        own.crc32c);
    own.bytes += end - begin;
  }
}

std::string checksum(const SealedFile& file, uint64_t size, std::span<FilePart> parts = {}) {
  uint64_t content = size - kSealBytes;
  std::vector<std::string> blocks((content + kBlock - 1) / kBlock);
  std::vector<std::vector<PartOfBlock>> parts_of_blocks(blocks.size());
  parallel_for(int64_t(blocks.size()), [&](int64_t i) {
    uint64_t begin = kSealBytes + uint64_t(i) * kBlock;
    uint64_t end = std::min(begin + kBlock, size);
    std::vector<char> piece(kSealedPiece);
    Sha256 hash;
    for (uint64_t at = begin; at < end; at += kSealedPiece) {
      size_t count = size_t(std::min<uint64_t>(kSealedPiece, end - at));
      file.read(piece.data(), count, at);
      hash.update(piece.data(), count);
      add_parts(parts, piece.data(), count, at, parts_of_blocks[size_t(i)]);
    }
    blocks[size_t(i)] = hash.hex();
  });
  for (const auto& block : parts_of_blocks) {
    for (const PartOfBlock& own : block) {
      uint32_t& crc = parts[own.part].crc32c;
      crc = joined_crc32c(crc, own.crc32c, own.bytes);
    }
  }
  Sha256 root;
  for (const auto& block : blocks) root.update(block);
  return root.hex();
}

std::string size_line(uint64_t size) {
  return concat("bytes ", size, "\n");
}

std::string seal_text(uint64_t size, const std::string& sum) {
  std::string text = concat(kTitle, size_line(size), "sha256 of 1 MiB blocks ", sum, "\n");
  FINETUNE_CHECK(text.size() < kSealBytes);
  text.resize(kSealBytes, '\n');
  return text;
}

}  // namespace

std::string seal_of(const std::filesystem::path& path, std::span<FilePart> parts) {
  SealedFile file(path, O_RDONLY);
  uint64_t size = file.size();
  FINETUNE_CHECK(size >= kSealBytes);
  return seal_text(size, checksum(file, size, parts));
}

std::vector<uint32_t> crc32c_of(const std::filesystem::path& path,
                                std::span<const FilePart> parts) {
  SealedFile file(path, O_RDONLY);
  const uint64_t size = file.size();
  std::vector<uint8_t> piece(kSealedPiece);
  std::vector<uint32_t> sums;
  for (const FilePart& part : parts) {
    const uint64_t end = std::min(part.end, size);
    uint32_t crc = 0;
    for (uint64_t at = part.begin; at < end; at += kSealedPiece) {
      const size_t count = size_t(std::min<uint64_t>(kSealedPiece, end - at));
      file.read(reinterpret_cast<char*>(piece.data()), count, at);
      crc = crc32c(piece.data(), count, crc);
    }
    sums.push_back(crc);
  }
  return sums;
}

void put_seal(const std::filesystem::path& path, const std::string& seal) {
  SealedFile file(path, O_RDWR);
  file.write(seal, 0);
  std::string found(kSealBytes, '\0');
  file.read(found.data(), found.size(), 0);
  const bool whole =
      std::string_view(seal).substr(kTitle.size()).starts_with(size_line(file.size()));
  if (found != seal || !whole) {
    throw model_error(path.string(), ": cannot be written: its seal does not read back");
  }
  file.close();
}

void verify_seal(const std::filesystem::path& path) {
  SealedFile file(path, O_RDONLY);
  uint64_t size = file.size();
  if (size < kSealBytes) throw model_error(path.string(), ": is cut short (", size, " bytes)");
  std::string found(kSealBytes, '\0');
  file.read(found.data(), found.size(), 0);
  if (!found.starts_with(kTitle)) {
    throw model_error(path.string(),
                      ": is not a checkpoint of this program, or its first bytes are "
                      "damaged");
  }
  if (!std::string_view(found).substr(kTitle.size()).starts_with(size_line(size))) {
    throw model_error(path.string(), ": is cut short or damaged (it has ", size,
                      " bytes, not as many as were written)");
  }
  // All bytes of the seal are compared, padding included.
  if (found != seal_text(size, checksum(file, size))) {
    throw model_error(path.string(), ": is damaged (its checksum does not match)");
  }
}

}  // namespace finetune

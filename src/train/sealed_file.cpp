#include "train/sealed_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/parallel.h"
#include "core/sha256.h"

namespace finetune {
namespace {

constexpr uint64_t kBlock = 1 << 20;
constexpr size_t kSealedPiece = 1 << 16;
constexpr std::string_view kTitle = "finetune checkpoint, format 1\n";

class Descriptor {
 public:
  Descriptor(const std::filesystem::path& path, int flags)
      : path_(path.string()), descriptor_(::open(path.c_str(), flags | O_CLOEXEC)) {
    if (descriptor_ < 0) throw model_error(path_, ": ", std::strerror(errno));
  }
  ~Descriptor() { ::close(descriptor_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  uint64_t size() const {
    struct stat info {};
    if (::fstat(descriptor_, &info) != 0) throw model_error(path_, ": ", std::strerror(errno));
    if (!S_ISREG(info.st_mode)) throw model_error(path_, ": is not a file");
    return uint64_t(info.st_size);
  }

  void read(char* out, size_t count, uint64_t offset) const {
    while (count > 0) {
      ssize_t got = ::pread(descriptor_, out, count, off_t(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw model_error(path_, ": cannot be read: ", std::strerror(errno));
      if (got == 0) throw model_error(path_, ": became shorter while it was read");
      out += got;
      offset += uint64_t(got);
      count -= size_t(got);
    }
  }

  void write(std::string_view text, uint64_t offset) const {
    ssize_t count = ::pwrite(descriptor_, text.data(), text.size(), off_t(offset));
    if (count != ssize_t(text.size())) {
      throw model_error(path_, ": cannot be written: ", std::strerror(errno));
    }
  }

 private:
  std::string path_;
  int descriptor_;
};

std::string checksum(const Descriptor& file, uint64_t size) {
  uint64_t content = size - kSealBytes;
  std::vector<std::string> blocks((content + kBlock - 1) / kBlock);
  parallel_for(int64_t(blocks.size()), [&](int64_t i) {
    uint64_t begin = kSealBytes + uint64_t(i) * kBlock;
    uint64_t end = std::min(begin + kBlock, size);
    std::vector<char> piece(kSealedPiece);
    Sha256 hash;
    for (uint64_t at = begin; at < end; at += kSealedPiece) {
      size_t count = size_t(std::min<uint64_t>(kSealedPiece, end - at));
      file.read(piece.data(), count, at);
      hash.update(piece.data(), count);
    }
    blocks[size_t(i)] = hash.hex();
  });
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

void seal_file(const std::filesystem::path& path) {
  Descriptor file(path, O_RDWR);
  uint64_t size = file.size();
  FINETUNE_CHECK(size >= kSealBytes);
  file.write(seal_text(size, checksum(file, size)), 0);
}

void verify_seal(const std::filesystem::path& path) {
  Descriptor file(path, O_RDONLY);
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
  // Every byte counts: the seal is compared whole, padding included.
  if (found != seal_text(size, checksum(file, size))) {
    throw model_error(path.string(), ": is damaged (its checksum does not match)");
  }
}

}  // namespace finetune

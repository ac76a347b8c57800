// Reads from an HDF5 file; each read is bounds-checked and charged to a budget.
#include "weights/hdf5/bytes.h"

#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/files/file_kind.h"

namespace finetune::hdf5 {
namespace {

// Each structure is read once, but names, attributes and paths are kept as well.
constexpr uint64_t kChargePerByte = 2;
constexpr uint64_t kLeastCharge = 1 << 16;
constexpr uint64_t kMostCharge = uint64_t{64} << 20;  // 50,000 datasets need less

}  // namespace

Bytes::Bytes(const std::filesystem::path& path) : descriptor_(open_file(path, ExitCode::model)) {
  struct stat info {};
  if (::fstat(descriptor_.number(), &info) != 0) throw fault(std::strerror(errno));
  size_ = uint64_t(info.st_size);
  left_ = std::min(kMostCharge, kLeastCharge + kChargePerByte * size_);
}

void Bytes::set_layout(uint64_t base, Widths widths) {
  base_ = base;
  widths_ = widths;
}

uint64_t Bytes::position(uint64_t address, uint64_t size, const char* what) const {
  const uint64_t room = size_ - base_;
  if (address > room || size > room - address) {
    throw fault("its ", what, " lies outside the file (truncated?)");
  }
  return base_ + address;
}

void Bytes::read(uint64_t position, uint64_t size, void* out) const {
  auto* to = static_cast<char*>(out);
  while (size > 0) {
    const ssize_t got = ::pread(descriptor_.number(), to, size_t(size), off_t(position));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw fault("cannot be read: ", std::strerror(errno));
    if (got == 0) throw fault("cannot be read: the file became shorter");
    to += got;
    position += uint64_t(got);
    size -= uint64_t(got);
  }
}

std::string Bytes::structure(uint64_t address, uint64_t size, const char* what, std::string front) {
  const uint64_t at = position(address, size, what), known = front.size();
  if (size < known) throw fault("its ", what, " is damaged");
  charge(size - known);
  front.resize(size_t(size));
  read(at + known, size - known, front.data() + known);
  return front;
}

std::string Bytes::sealed(uint64_t address, uint64_t size, std::string_view signature,
                          const char* what, std::string front) {
  constexpr size_t kChecksum = 4;
  std::string bytes = structure(address, size, what, std::move(front));
  if (bytes.size() < signature.size() + kChecksum || !bytes.starts_with(signature)) {
    throw fault("its ", what, " is damaged");
  }
  const size_t content = bytes.size() - kChecksum;
  Cursor end(std::string_view(bytes).substr(content), widths_, what);
  if (end.u32() != lookup3({bytes.data(), content})) {
    throw fault("its ", what, " does not match its checksum: the file is damaged");
  }
  bytes.resize(content);
  return bytes;
}

void Bytes::charge(uint64_t bytes) {
  if (bytes > left_) {
    throw fault("its structures are larger than a file of ", size_, " bytes can need");
  }
  left_ -= bytes;
}

namespace {

struct Words {
  uint32_t a, b, c;

  void add(const char* twelve_bytes) {
    uint32_t words[3];
    std::memcpy(words, twelve_bytes, sizeof words);
    a += words[0];
    b += words[1];
    c += words[2];
  }

  void mix() {
    constexpr int kTurns[] = {4, 6, 8, 16, 19, 4};
    uint32_t* order[] = {&a, &b, &c};
    for (int i = 0; i < 6; ++i) {
      uint32_t &x = *order[i % 3], &y = *order[(i + 1) % 3], &z = *order[(i + 2) % 3];
      x = (x - z) ^ std::rotl(z, kTurns[i]);
      z += y;
    }
  }

  void finish() {
    constexpr int kTurns[] = {14, 11, 25, 16, 4, 14, 24};
    uint32_t* order[] = {&c, &a, &b};
    for (int i = 0; i < 7; ++i) {
      uint32_t &x = *order[i % 3], &y = *order[(i + 2) % 3];
      x = (x ^ y) - std::rotl(y, kTurns[i]);
    }
  }
};

}  // namespace

uint32_t lookup3(std::string_view bytes) {
  constexpr size_t kStep = 12;
  const uint32_t start = 0xdeadbeefu + uint32_t(bytes.size());
  Words words{start, start, start};
  while (bytes.size() > kStep) {
    words.add(bytes.data());
    words.mix();
    bytes.remove_prefix(kStep);
  }
  if (bytes.empty()) return words.c;
  char last[kStep] = {};
  std::memcpy(last, bytes.data(), bytes.size());
  words.add(last);
  words.finish();
  return words.c;
}

}  // namespace finetune::hdf5

// Reads from an HDF5 file; each read is bounds-checked and charged to a budget.
#include "weights/hdf5/bytes.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "weights/hdf5/checksums.h"

namespace finetune::hdf5 {
namespace {

// Each structure is read once, but names, attributes and paths are kept as well.
constexpr uint64_t kChargePerByte = 2;
constexpr uint64_t kLeastCharge = 1 << 16;
constexpr uint64_t kMostCharge = uint64_t{64} << 20;  // 50,000 datasets need less

}  // namespace

// Without O_NONBLOCK, opening a FIFO would wait for its writer.
Bytes::Bytes(const std::filesystem::path& path)
    : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  struct stat info {};
  if (descriptor_.number() < 0 || ::fstat(descriptor_.number(), &info) != 0) {
    throw fault(std::strerror(errno));
  }
  if (!S_ISREG(info.st_mode)) throw fault("is not a regular file");
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

}  // namespace finetune::hdf5

// A window over an input's bytes: a file or pipe, read block by block.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "data/rows/row_stream.h"

namespace finetune {
namespace {

constexpr size_t kBlockSize = 256 << 10;

}  // namespace

ByteWindow ByteWindow::open(const fs::path& path) {
  ByteWindow window{std::string_view()};
  window.last_ = false;
  window.name_ = input_name(path);
  require_stream(path);
  window.descriptor_ = path == "-" ? ::dup(0) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info {};
  if (window.descriptor_ < 0 || ::fstat(window.descriptor_, &info) != 0) {
    throw data_error(window.name_, ": ", std::strerror(errno));
  }
  if (path != "-" && S_ISREG(info.st_mode)) window.expected_ = uint64_t(info.st_size);
  return window;
}

ByteWindow::~ByteWindow() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

ByteWindow::ByteWindow(ByteWindow&& other) noexcept
    : name_(std::move(other.name_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      buffer_(std::move(other.buffer_)),
      capacity_(other.capacity_),
      expected_(other.expected_),
      bytes_(other.bytes_),
      last_(other.last_) {}

size_t ByteWindow::read_block(size_t at) {
  for (;;) {
    ssize_t count = ::read(descriptor_, buffer_.get() + at, capacity_ - at);
    if (count > 0) expected_ -= std::min(expected_, uint64_t(count));
    if (count == 0 && expected_ > 0) throw data_error(name_, ": became shorter while it was read");
    if (count >= 0) return size_t(count);
    if (errno != EINTR) throw data_error(name_, ": cannot be read: ", std::strerror(errno));
  }
}

// A row that is not whole yet is scanned again from its beginning, so a long one must grow by
// doubling; a short one is handed on as soon as anything comes (the other end may wait for us).
void ByteWindow::more() {
  if (last_) return;
  const size_t kept = bytes_.size();
  if (capacity_ < 2 * kept + kBlockSize) {
    capacity_ = 2 * kept + kBlockSize;
    auto larger = std::make_unique_for_overwrite<char[]>(capacity_);
    std::copy(bytes_.begin(), bytes_.end(), larger.get());
    buffer_ = std::move(larger);
  } else {
    std::memmove(buffer_.get(), bytes_.data(), kept);
  }
  const size_t enough = kept < kBlockSize ? kept + 1 : 2 * kept;
  size_t size = kept;
  while (size < enough && !last_) {
    size_t count = read_block(size);
    last_ = count == 0;
    size += count;
  }
  bytes_ = {buffer_.get(), size};
}

}  // namespace finetune

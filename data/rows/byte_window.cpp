// A window over an input's bytes, read block by block.
#include <algorithm>
#include <cstring>
#include <utility>

#include "data/rows/row_stream.h"

namespace finetune {
namespace {

constexpr size_t kBlockSize = 256 << 10;

}  // namespace

// An incomplete row is scanned again from its beginning, so a long one must grow by doubling. A
// short one is handed on as soon as bytes arrive, since the writer may wait for our answer.
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
    const size_t count = source_->read(buffer_.get() + size, capacity_ - size);
    last_ = count == 0;
    size += count;
  }
  bytes_ = {buffer_.get(), size};
}

}  // namespace finetune

// The text arena's allocator: blocks that are filled one after the other.
#include "data/text_arena.h"

#include <algorithm>
#include <cstring>

namespace finetune {
namespace {

constexpr size_t kBlockBytes = 64 << 10;

}  // namespace

char* TextArena::allocate(size_t size) {
  if (capacity_ - used_ < size) {
    // Reuses the next kept block if it is large enough, else allocates a new one in its place.
    if (used_blocks_ == blocks_.size()) blocks_.emplace_back();
    Block& block = blocks_[used_blocks_++];
    if (block.size < size) {
      block.size = std::max(size, kBlockBytes);
      block.data = std::make_unique_for_overwrite<char[]>(block.size);
    }
    used_ = 0;
    capacity_ = block.size;
  }
  if (size == 0) return nullptr;
  char* out = blocks_[used_blocks_ - 1].data.get() + used_;
  used_ += size;
  return out;
}

std::string_view TextArena::keep(std::string_view text) {
  if (text.empty()) return "";
  char* out = allocate(text.size());
  std::memcpy(out, text.data(), text.size());
  return {out, text.size()};
}

}  // namespace finetune

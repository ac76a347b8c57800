// Counts allocated bytes through a sanitizer's allocator hooks, or nothing without one.
#include <algorithm>
#include <atomic>

#include "fuzz/allocations.h"

extern "C" {
[[gnu::weak]] int __sanitizer_install_malloc_and_free_hooks(
    void (*malloc_hook)(const volatile void*, size_t), void (*free_hook)(const volatile void*));
[[gnu::weak]] size_t __sanitizer_get_allocated_size(const volatile void* memory);
}

namespace {

std::atomic<size_t> held{0}, most_held{0};

void on_malloc(const volatile void*, size_t size) {
  const size_t now = held += size;
  size_t most = most_held;
  while (now > most && !most_held.compare_exchange_weak(most, now)) {
  }
}

// Memory allocated before the hooks existed is not subtracted when freed.
void on_free(const volatile void* memory) {
  if (memory == nullptr) return;
  const size_t size = __sanitizer_get_allocated_size(memory);
  held -= std::min<size_t>(size, held);
}

}  // namespace

namespace finetune::fuzz {

AllocationCount::AllocationCount() {
  static const bool installed = __sanitizer_install_malloc_and_free_hooks != nullptr &&
                                __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free) != 0;
  (void)installed;
  before_ = held;
  most_held = before_;
}

size_t AllocationCount::peak() const {
  return most_held > before_ ? most_held - before_ : 0;
}

}  // namespace finetune::fuzz

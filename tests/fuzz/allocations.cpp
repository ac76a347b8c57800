// Operators new and delete that count bytes.
#include "fuzz/allocations.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<size_t> held{0}, most_held{0};

void* counted(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  const size_t now = held += ::malloc_usable_size(memory);
  size_t most = most_held;
  while (now > most && !most_held.compare_exchange_weak(most, now)) {
  }
  return memory;
}

void release(void* memory) {
  if (memory == nullptr) return;
  held -= ::malloc_usable_size(memory);
  std::free(memory);
}

void* aligned(size_t size, std::align_val_t alignment) {
  const auto unit = size_t(alignment);
  return std::aligned_alloc(unit, (size + unit - 1) / unit * unit);
}

}  // namespace

// Other forms call one of these.
void* operator new(size_t size) {
  return counted(std::malloc(std::max<size_t>(size, 1)));
}
void* operator new(size_t size, std::align_val_t alignment) {
  return counted(aligned(std::max<size_t>(size, 1), alignment));
}
void operator delete(void* memory) noexcept {
  release(memory);
}
void operator delete(void* memory, size_t) noexcept {
  release(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  release(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  release(memory);
}

namespace finetune::fuzz {

AllocationCount::AllocationCount() : before_(held) {
  most_held = before_;
}

size_t AllocationCount::peak() const {
  return most_held > before_ ? most_held - before_ : 0;
}

}  // namespace finetune::fuzz

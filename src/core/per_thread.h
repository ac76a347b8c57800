// Per-thread memory that is freed with its thread.
#pragma once

#include <pthread.h>

#include <memory>
#include <new>

namespace finetune {

// Returns the calling thread's T, created at first use; one per type. A thread_local would need a
// destructor registered by the C library, and glibc aborts the program if memory runs out there;
// this throws bad_alloc instead.
template <typename T>
T& per_thread() {
  struct Key {
    pthread_key_t number;
    Key() {
      if (pthread_key_create(&number, [](void* own) { delete static_cast<T*>(own); }) != 0) {
        throw std::bad_alloc();
      }
    }
  };
  static const Key key;
  thread_local T* own = nullptr;
  if (own == nullptr) {
    auto made = std::make_unique<T>();
    if (pthread_setspecific(key.number, made.get()) != 0) throw std::bad_alloc();
    own = made.release();
  }
  return *own;
}

}  // namespace finetune

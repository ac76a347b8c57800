// Memory of a thread's own that ends with it.
#pragma once

#include <pthread.h>

#include <memory>
#include <new>

namespace finetune {

// The calling thread's T, made at its first use: one for each type. As a thread_local it would need
// a destructor that the C library registers, and glibc ends the program where memory is lacking for
// that; here it is bad_alloc.
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

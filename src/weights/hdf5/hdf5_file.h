// The HDF5 C library, which only writes: handles that close themselves. Files that are read never
// reach it (weights/hdf5/reader.h).
#pragma once

#include <hdf5.h>

#include <mutex>
#include <string>
#include <utility>

namespace finetune {

// The library is not thread-safe: whoever calls it holds this.
std::mutex& hdf5_mutex();

// Before the library's first call of all: its own messages are off, and it does nothing when the
// process ends, when it would go on with files that a failed write has left.
void prepare_hdf5();

// Whoever writes closes it with a look at the status; the destructor is for the way of an error.
class Hdf5Handle {
 public:
  Hdf5Handle() = default;
  Hdf5Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Hdf5Handle() {
    if (id_ >= 0) close_(id_);
  }
  Hdf5Handle(Hdf5Handle&& other) noexcept
      : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  // What the library says of the closing, by which much of a file is written.
  [[nodiscard]] herr_t close() { return id_ >= 0 ? close_(std::exchange(id_, -1)) : 0; }
  operator hid_t() const { return id_; }
  bool valid() const { return id_ >= 0; }

 private:
  hid_t id_ = -1;
  herr_t (*close_)(hid_t) = nullptr;
};

// What the library's error stack says is wrong, in a few words. Clears the stack.
std::string hdf5_reason();

}  // namespace finetune

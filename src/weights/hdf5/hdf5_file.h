// The HDF5 C library, used only for writing: handles that close themselves. Files are read without
// it (weights/hdf5/reader.h).
#pragma once

#include <hdf5.h>

#include <mutex>
#include <string>
#include <utility>

namespace finetune {

// The library is not thread-safe: hold this mutex during every call.
std::mutex& hdf5_mutex();

// Call before any other function of the library. Turns off the library's messages and its exit
// handler, which would still write to files that a failed write has left open.
void prepare_hdf5();

// Call close() after writing and check its status; the destructor only handles error paths.
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
  // Closes the handle and returns the library's status. Closing writes much of a file.
  [[nodiscard]] herr_t close() { return id_ >= 0 ? close_(std::exchange(id_, -1)) : 0; }
  operator hid_t() const { return id_; }
  bool valid() const { return id_ >= 0; }

 private:
  hid_t id_ = -1;
  herr_t (*close_)(hid_t) = nullptr;
};

// Returns a short description from the library's error stack, and clears the stack.
std::string hdf5_reason();

}  // namespace finetune

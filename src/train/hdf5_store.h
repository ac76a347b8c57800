// Just enough of HDF5 to write checkpoints: attributes, text, floats. Failures are Error(model)
// with one line; HDF5's own error stack is never printed. They are read by checkpoint_contents.h.
#pragma once

#include <hdf5.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "weights/hdf5_file.h"

namespace finetune {

// Rows (of the first dimension) of a slab, in which tensors of this shape are written and read.
int64_t checkpoint_rows(const std::vector<int64_t>& shape);

// visit(first row, number of rows) for each slab of such a tensor, in order.
template <typename Visit>
void each_slab(const std::vector<int64_t>& shape, Visit&& visit) {
  const int64_t rows = checkpoint_rows(shape);
  for (int64_t first = 0; first < shape[0]; first += rows) {
    visit(first, std::min(rows, shape[0] - first));
  }
}

// A new file behind a user block of `user_block` bytes. It holds the library's lock while it
// exists.
class Hdf5Store {
 public:
  static Hdf5Store create(const std::filesystem::path& path, uint64_t user_block);
  void close();  // Error(model) if something could not be written

  void make_group(const std::string& name);
  // Attributes of the group `group` ("/" is the root).
  void write_attribute(const std::string& group, const std::string& name, int64_t value);
  void write_attribute(const std::string& group, const std::string& name, double value);
  void write_attribute(const std::string& group, const std::string& name, const std::string& text);

  // A one-dimensional dataset of strings of fixed size, NUL-padded UTF-8.
  void write_strings(const std::string& name, const std::vector<std::string>& values);

  // Contiguous little-endian float32, in slabs of whole rows (of the first dimension) one after the
  // other: `next` gives the memory of rows [first, first + count) to write from.
  using Source = std::function<const float*(int64_t first, int64_t count)>;
  void write_floats(const std::string& name, const std::vector<int64_t>& shape, const Source& next);

 private:
  Hdf5Handle check(hid_t id, herr_t (*close)(hid_t), const std::string& what) const;
  void check(herr_t status, const std::string& what) const;
  void put_attribute(const std::string& group, const std::string& name, hid_t type,
                     const void* value);

  std::string path_;
  std::unique_lock<std::mutex> lock_{hdf5_mutex()};
  Hdf5Handle file_;  // closed before the lock is given up
};

}  // namespace finetune

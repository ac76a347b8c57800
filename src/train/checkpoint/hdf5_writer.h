// Writes the HDF5 files of checkpoints: groups, attributes, texts, floats. Every status of the
// library is checked. Closing matters most: small data sets reach the file only then. Failures are
// Error(model) with one line that has the system's reason.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "weights/hdf5/hdf5_file.h"

namespace finetune {

// A new file behind a user block of `user_block` bytes. It holds the library's lock until it is
// closed. After an error, only destroy it: the library's objects are released, not repaired.
class Hdf5Writer {
 public:
  Hdf5Writer(const std::filesystem::path& path, uint64_t user_block);
  void close();  // then the file has all data, as far as the system says

  void make_group(const std::string& name);
  // Attributes of the group `group` ("/" is the root).
  void write_attribute(const std::string& group, const std::string& name, int64_t value);
  void write_attribute(const std::string& group, const std::string& name, double value);
  void write_attribute(const std::string& group, const std::string& name, const std::string& text);

  // A one-dimensional dataset of strings of fixed size, NUL-padded UTF-8.
  void write_strings(const std::string& name, const std::vector<std::string>& values);

  // Writes contiguous little-endian float32 in slabs of whole rows (of the first dimension), one
  // after the other: `next` returns the memory that holds rows [first, first + count).
  using Source = std::function<const float*(int64_t first, int64_t count)>;
  void write_floats(const std::string& name, const std::vector<int64_t>& shape, const Source& next);

 private:
  void check(herr_t status) const;
  Hdf5Handle check(hid_t id, herr_t (*close)(hid_t)) const;
  template <typename... Handles>
  void close_all(Handles&... handles) const {
    (check(handles.close()), ...);
  }
  Hdf5Handle properties_of(hid_t creation) const;
  Hdf5Handle string_type(size_t size) const;
  Hdf5Handle create_dataset(const std::string& name, hid_t type, hid_t space) const;
  void put_attribute(const std::string& group, const std::string& name, hid_t type,
                     const void* value);

  std::string path_;
  std::unique_lock<std::mutex> lock_{hdf5_mutex()};
  Hdf5Handle file_;  // closed before the lock is released
};

}  // namespace finetune

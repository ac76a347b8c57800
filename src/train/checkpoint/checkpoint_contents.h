// What a checkpoint's file holds: attributes, texts, floats, read without the HDF5 library
// (weights/hdf5/reader.h). The seal tells of damage, not of who wrote the file: nothing in it is
// trusted. Failures are Error(model) with one line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "weights/hdf5/reader.h"

namespace finetune {

class CheckpointContents {
 public:
  explicit CheckpointContents(const std::filesystem::path& path);

  // Attributes of the group `group` ("/" is the root).
  int64_t read_int(const std::string& group, const std::string& name);
  double read_double(const std::string& group, const std::string& name);
  std::string read_text(const std::string& group, const std::string& name);  // of one line
  std::vector<std::string> attribute_names(const std::string& group);

  // A one-dimensional dataset of strings of fixed size, NUL-padded UTF-8.
  std::vector<std::string> read_strings(const std::string& name);

  // Contiguous little-endian float32, in slabs of whole rows (weights/stored_tensor.h), one after
  // the other: `next` gives the memory to read rows [first, first + count) into, `filled` is called
  // when it has been. Error(model) if the dataset is missing or has another shape or type.
  using Room = std::function<float*(int64_t first, int64_t count)>;
  using Filled = std::function<void(int64_t first, int64_t count, const float* data)>;
  void read_floats(const std::string& name, const std::vector<int64_t>& shape, const Room& next,
                   const Filled& filled);

  // Where in the file the floats of such a tensor begin. Errors as of read_floats.
  uint64_t floats_at(const std::string& name, const std::vector<int64_t>& shape);

  struct Entry {
    std::string name;
    std::vector<int64_t> shape;
  };
  std::vector<Entry> datasets(const std::string& group);  // in order of name

 private:
  hdf5::AttributeValue number(const std::string& group, const std::string& name,
                              hdf5::Type::Kind kind);
  hdf5::Dataset floats(const std::string& name);
  hdf5::Dataset floats(const std::string& name, const std::vector<int64_t>& shape);

  hdf5::Reader file_;
};

// A file that has just been written is read back before it counts: no status tells of a write that
// a library or a file system has lost. This is a tensor as it was given to the writer.
struct WrittenTensor {
  std::string name;
  std::vector<int64_t> shape;
  uint32_t crc32c;  // of its memory
};

// The seal of a closed file (sealed_file.h), once the file has been found to hold these tensors.
// Error(model) if it has others. What the seal sums and what is compared are the same bytes, read
// once; those between the tensors are the caller's to compare, after this.
std::string verified_seal(const std::filesystem::path& path,
                          const std::vector<WrittenTensor>& tensors);

}  // namespace finetune

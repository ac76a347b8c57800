// Reads a checkpoint's attributes, texts and floats without the HDF5 library. The reader is in
// weights/hdf5/reader.h. The seal detects damage, but anyone can write a seal, so the content is
// not trusted. Failures are Error(model) with one line.
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

  // Reads contiguous little-endian float32 in slabs of whole rows (weights/stored_tensor.h), one
  // after the other. `next` returns the memory for rows [first, first + count); `filled` is called
  // when they are read. Error(model) if the dataset is missing or has another shape or type.
  using Room = std::function<float*(int64_t first, int64_t count)>;
  using Filled = std::function<void(int64_t first, int64_t count, const float* data)>;
  void read_floats(const std::string& name, const std::vector<int64_t>& shape, const Room& next,
                   const Filled& filled);

  // Where the floats of this tensor begin in the file. Throws as read_floats does.
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

// A tensor as it was given to the writer. New files are read back before they count, because no
// status reports a write that a library or a file system has lost.
struct WrittenTensor {
  std::string name;
  std::vector<int64_t> shape;
  uint32_t crc32c;  // of its memory
};

// The seal of a closed file (sealed_file.h) that holds these tensors. Error(model) if it holds
// others. The tensors' bytes are read once, both for the seal and to compare them. The caller
// compares the bytes between the tensors afterwards.
std::string verified_seal(const std::filesystem::path& path,
                          const std::vector<WrittenTensor>& tensors);

}  // namespace finetune

// A file that has just been written is read back before it counts: no status tells of a write that
// a library or a file system has lost. (What a disk loses later the seal tells.)
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace finetune {

// A tensor as it was handed to the writer.
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

// Shared by the tests of this folder.
#pragma once

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/files/files.h"
#include "error_line.h"
#include "temporary_directory.h"
#include "weights/weights.h"

namespace finetune::test {

inline void write_bytes(const fs::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), std::streamsize(bytes.size()));
}

inline std::string read_bytes(const fs::path& path) {
  return read_text_file(path);
}

inline int64_t count_of(const WeightInfo& info) {
  int64_t count = 1;
  for (int64_t d : info.shape) count *= d;
  return count;
}

inline std::vector<float> values_of(const WeightSource& source, const WeightInfo& info) {
  std::vector<float> values(static_cast<size_t>(count_of(info)));
  source.read(info, values.data());
  return values;
}

// Equal in every bit.
inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

// The message of the Error(model) of opening `path`; empty if it opens.
inline std::string refusal(const fs::path& path) {
  return error_line(ExitCode::model, [&] { open_weights(path); });
}

// A safetensors file with one header and some bytes of data.
inline std::string safetensors_bytes(std::string_view header, std::string_view data) {
  uint64_t size = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &size, 8);
  return bytes.append(header).append(data);
}

}  // namespace finetune::test

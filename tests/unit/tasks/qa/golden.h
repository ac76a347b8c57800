// Golden values of question answering: a minimal safetensors reader, and the tokenizers.
#pragma once

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "../../shared.h"
#include "core/files/files.h"

namespace finetune::test {

class GoldenTensors {
 public:
  explicit GoldenTensors(const std::filesystem::path& path) : file_(path) {
    uint64_t header_size = 0;
    std::memcpy(&header_size, file_.text().data(), 8);
    header_ = nlohmann::json::parse(file_.text().substr(8, header_size));
    data_ = file_.text().data() + 8 + header_size;
  }
  std::string metadata(const std::string& key) const { return header_["__metadata__"][key]; }
  template <typename T>
  std::vector<T> values(const std::string& name) const {
    size_t begin = header_[name]["data_offsets"][0], end = header_[name]["data_offsets"][1];
    std::vector<T> out((end - begin) / sizeof(T));
    std::memcpy(out.data(), data_ + begin, end - begin);
    return out;
  }

 private:
  MappedFile file_;
  nlohmann::json header_;
  const char* data_;
};

inline nlohmann::json read_json(const std::filesystem::path& path) {
  return nlohmann::json::parse(MappedFile(path).text());
}

}  // namespace finetune::test

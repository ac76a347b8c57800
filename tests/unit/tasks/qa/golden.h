// Golden values: a minimal safetensors reader, and JSON files.
#pragma once

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "../../shared.h"
#include "core/files/files.h"
#include "core/text/json_value.h"

namespace finetune::test {

class GoldenTensors {
 public:
  explicit GoldenTensors(const std::filesystem::path& path) : file_(path) {
    uint64_t header_size = 0;
    std::memcpy(&header_size, file_.text().data(), 8);
    header_ = JsonValue::parse(file_.text().substr(8, header_size));
    data_ = file_.text().data() + 8 + header_size;
  }
  std::string metadata(const std::string& key) const {
    return header_["__metadata__"][key].as<std::string>().value();
  }
  template <typename T>
  std::vector<T> values(const std::string& name) const {
    const auto place = header_[name]["data_offsets"].as<std::vector<int64_t>>().value();
    const auto size = size_t(place.at(1) - place.at(0));
    std::vector<T> out(size / sizeof(T));
    std::memcpy(out.data(), data_ + place[0], size);
    return out;
  }

 private:
  MappedFile file_;
  JsonValue header_;
  const char* data_;
};

inline JsonValue read_json(const std::filesystem::path& path) {
  return JsonValue::parse(MappedFile(path).text());
}

}  // namespace finetune::test

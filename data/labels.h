// The label map of classification: names sorted by code point (which is byte order in UTF-8).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace finetune {

class LabelMap {
 public:
  LabelMap() = default;
  // Names in order of id, as given (a fine-tuned model's own map).
  explicit LabelMap(std::vector<std::string> names);
  // Distinct values, sorted.
  static LabelMap from_values(const std::vector<std::string_view>& values);

  int32_t find(std::string_view name) const;  // -1 if unknown
  const std::vector<std::string>& names() const { return names_; }
  int64_t size() const { return int64_t(names_.size()); }

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string, int32_t> ids_;
};

}  // namespace finetune

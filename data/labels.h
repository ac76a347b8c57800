// The label map of classification: names sorted by code point, or numbers by their value.
// By code point is byte order in UTF-8.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace finetune {

class LabelMap {
 public:
  LabelMap() = default;
  // Names in order of id, as given (a fine-tuned model's own map). Error(model) for a name twice.
  explicit LabelMap(std::vector<std::string> names);
  // Distinct values, sorted: where all of them are finite numbers, by these (equal ones, as 1 and
  // 1.0, by code point).
  static LabelMap from_values(const std::vector<std::string_view>& values);

  int32_t find(std::string_view name) const;  // -1 if unknown
  const std::vector<std::string>& names() const { return names_; }
  int64_t size() const { return int64_t(names_.size()); }

 private:
  struct Hash {
    using is_transparent = void;  // found by string_view, without a copy
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::vector<std::string> names_;
  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> ids_;
};

}  // namespace finetune

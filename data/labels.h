// The label map of classification: names sorted by code point (byte order in UTF-8), or by value if
// all names are numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace finetune {

// The number that a cell holds, ignoring white space around it, or nothing if it is not finite.
std::optional<double> finite_number(std::string_view text);

// The labels of one multi-label value: the parts between separators. White space around a part and
// empty parts are dropped. An empty value has no labels.
std::vector<std::string_view> split_labels(std::string_view value, std::string_view separator);

class LabelMap {
 public:
  LabelMap() = default;
  // Takes the names in order of id, as a fine-tuned model lists them. Error(model) for a repeated
  // name.
  explicit LabelMap(std::vector<std::string> names);
  // Takes distinct values and sorts them: by value if all are finite numbers (equal numbers, such
  // as 1 and 1.0, by code point), else by code point.
  static LabelMap from_values(const std::vector<std::string_view>& values);

  int32_t find(std::string_view name) const;  // -1 if unknown
  const std::vector<std::string>& names() const { return names_; }
  int64_t size() const { return int64_t(names_.size()); }

 private:
  struct Hash {
    using is_transparent = void;  // look up a string_view without a copy
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::vector<std::string> names_;
  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> ids_;
};

}  // namespace finetune

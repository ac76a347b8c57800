// Reads label values, and looks labels up by hash.
#include "data/labels.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_set>
#include <utility>

#include "core/error.h"
#include "core/text/text.h"

namespace finetune {

namespace {

bool is_number(const std::string& name) {
  const std::optional<double> value = parse_double(name);
  return value && std::isfinite(*value);
}

}  // namespace

std::optional<double> finite_number(std::string_view text) {
  std::optional<double> value = parse_double(trim(text));
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::vector<std::string_view> split_labels(std::string_view value, std::string_view separator) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= value.size();) {
    size_t end = std::min(value.find(separator, begin), value.size());
    std::string_view part = trim(value.substr(begin, end - begin));
    if (!part.empty()) parts.push_back(part);
    begin = end + separator.size();
  }
  return parts;
}

LabelMap::LabelMap(std::vector<std::string> names) : names_(std::move(names)) {
  ids_.reserve(names_.size());
  for (size_t i = 0; i < names_.size(); ++i) {
    if (!ids_.emplace(names_[i], int32_t(i)).second) {
      throw model_error("the label map names ", in_quotes(names_[i]), " twice, as ",
                        find(names_[i]), " and ", i);
    }
  }
}

LabelMap LabelMap::from_values(const std::vector<std::string_view>& values) {
  std::unordered_set<std::string_view> distinct(values.begin(), values.end());
  std::vector<std::string> names(distinct.begin(), distinct.end());
  std::sort(names.begin(), names.end());
  if (std::all_of(names.begin(), names.end(), is_number)) {
    std::stable_sort(names.begin(), names.end(), [](const auto& a, const auto& b) {
      return *parse_double(a) < *parse_double(b);
    });
  }
  return LabelMap(std::move(names));
}

int32_t LabelMap::find(std::string_view name) const {
  auto found = ids_.find(name);
  return found == ids_.end() ? -1 : found->second;
}

}  // namespace finetune

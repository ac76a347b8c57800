// Builds the sorted label map from values or names, and looks names up by hash.
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

// The sorted label map: built from values or names, looked up by hash.
#include "data/labels.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "core/error.h"

namespace finetune {

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
  return LabelMap(std::move(names));
}

int32_t LabelMap::find(std::string_view name) const {
  auto found = ids_.find(name);
  return found == ids_.end() ? -1 : found->second;
}

}  // namespace finetune

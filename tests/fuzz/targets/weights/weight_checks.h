// Properties of opened weights.
#pragma once

#include <memory>
#include <set>
#include <string_view>
#include <vector>

#include "fuzz/target.h"
#include "weights/stored_tensor.h"
#include "weights/weights.h"

namespace finetune::fuzz {

// Reads all tensors, like a model that needs each of them.
inline std::vector<std::vector<float>> read_all(const WeightSource& source) {
  std::vector<const WeightInfo*> wanted;
  std::set<std::string_view> names;
  for (const WeightInfo& info : source.tensors()) {
    require(names.insert(info.name).second, "two tensors are ", in_quotes(info.name));
    require(source.find(info.name) == &info, in_quotes(info.name), " is not found by its name");
    require(element_count(info.shape).has_value(), in_quotes(info.name), " has no size");
    wanted.push_back(&info);
  }
  source.require_own_bytes(wanted);
  std::vector<std::vector<float>> values;
  for (const WeightInfo* info : wanted) {
    values.emplace_back(size_t(*element_count(info->shape)));
    source.read(*info, values.back().data());
  }
  return values;
}

inline void check_weights(const std::unique_ptr<WeightSource>& source) {
  require(source != nullptr, "no weights and no error");
  read_all(*source);
}

}  // namespace finetune::fuzz

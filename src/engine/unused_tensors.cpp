// Separates unused tensors that fine-tuning never needs from unknown ones.
#include "engine/unused_tensors.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "core/text/counted.h"
#include "core/text/printable.h"
#include "core/text/text.h"
#include "model/head.h"

namespace finetune {
namespace {

constexpr size_t kNamesShown = 3, kLongestShownName = 80;

// Name prefixes of all heads and poolers; RoBERTa-like models have a pooler that no head reads.
std::vector<std::string> head_prefixes(const Architecture& architecture) {
  std::vector<std::string> prefixes = {concat(architecture.names.base_prefix, "pooler."),
                                       architecture.module_of(Role::pooler) + ".",
                                       architecture.module_of(Role::masked_norm) + ".",
                                       architecture.module_of(Role::masked_decoder) + "."};
  for (const HeadTraits& head : kHeads) prefixes.push_back(architecture.module_of(head.role) + ".");
  return prefixes;
}

}  // namespace

UnusedTensors find_unused(const Architecture& architecture, const WeightSource& source,
                          const std::vector<std::string>& used) {
  const std::unordered_set<std::string_view> taken(used.begin(), used.end());
  const std::vector<std::string> heads = head_prefixes(architecture);
  UnusedTensors unused;
  for (const WeightInfo& info : source.tensors()) {
    if (taken.contains(info.name)) continue;
    const bool of_head = std::any_of(heads.begin(), heads.end(), [&](const std::string& prefix) {
      return info.name.starts_with(prefix);
    });
    (of_head ? unused.known : unused.unknown).push_back(info.stored_name);
  }
  for (const WeightInfo& info : source.ignored()) unused.known.push_back(info.stored_name);
  return unused;
}

std::string some_tensors(const std::vector<std::string>& stored_names) {
  std::vector<std::string> shown;
  for (const std::string& name : stored_names) {
    if (shown.size() > kNamesShown) break;  // join_some needs one name more than it shows
    shown.push_back(printable(name, kLongestShownName));
  }
  return concat(counted(stored_names.size(), "other tensor"), " (", join_some(shown, kNamesShown),
                ")");
}

std::string unknown_tensors_warning(const WeightSource& source, const UnusedTensors& unused) {
  if (unused.unknown.empty()) return {};
  return concat("warning: ", source.path().string(), " holds ", some_tensors(unused.unknown),
                ", which the model of its config does not have; not used");
}

}  // namespace finetune

// The options of a layout that only `finetune plan --world` knows, beside those of train.
// Declared once, as those of train are (options.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "train/options/options.h"

namespace finetune {

struct LayoutOptions {
  std::optional<int64_t> offload_activations;  // the horizon
};

inline constexpr int64_t kDefaultHorizon = 4;

// As for_each_option (options.h).
template <typename Options, typename Visit>
void for_each_layout_option(Options& o, Visit&& visit) {
  using enum OptionRole;
  OptionInfo offload{
      "offload-activations",
      kLayoutGroup,
      run,
      between(1, 4096),
      "with --recompute: inputs of layers wait on the host, back N layers ahead (alone: 4)",
      "",
      "[N]"};
  offload.bare = kDefaultHorizon;
  visit(offload, o.offload_activations);
}

// Error(usage), one line, for options of a pipeline that do not go together. World and model are
// not looked at.
void validate_pipeline(const TrainOptions& options);
// The same of all options of a layout, and values out of range.
void validate(const LayoutOptions& options, const TrainOptions& train);

}  // namespace finetune

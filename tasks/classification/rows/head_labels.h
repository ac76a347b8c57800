// The labels of a trained head that gains or loses some: --extend-head and --drop-labels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace finetune {

struct HeadLabels {
  std::vector<std::string> labels;  // in order of id: those that stay, then the new ones
  std::vector<int32_t> rows;        // the head's own id of each, or -1; empty: nothing changes
  std::vector<std::string> added, dropped;
  std::vector<std::string> idle;  // stay, but the data lacks them
};

// `own`: the head's labels in order of id. `of_data`: the data's, sorted; of these the new ones are
// left out unless `extends`. Labels that the data lacks stay unless `drops`.
HeadLabels head_labels(const std::vector<std::string>& own, const std::vector<std::string>& of_data,
                       bool extends, bool drops);

// A line for the log, which names the labels that come and go.
std::string describe_head_labels(const HeadLabels& head);

}  // namespace finetune

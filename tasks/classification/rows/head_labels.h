// Finds the labels of a trained head that gains or loses some: --extend-head and --drop-labels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace finetune {

struct HeadLabels {
  std::vector<std::string> labels;  // in order of id: kept labels, then new ones
  std::vector<int32_t> rows;        // each label's old id, or -1; empty if nothing changes
  std::vector<std::string> added, dropped;
  std::vector<std::string> idle;  // kept, but not in the data
};

// `own`: the head's labels in order of id. `of_data`: the data's labels, sorted; new ones are left
// out unless `extends`. Labels that are not in the data are kept unless `drops`.
HeadLabels head_labels(const std::vector<std::string>& own, const std::vector<std::string>& of_data,
                       bool extends, bool drops);

// A line for the log that names added and dropped labels.
std::string describe_head_labels(const HeadLabels& head);

}  // namespace finetune

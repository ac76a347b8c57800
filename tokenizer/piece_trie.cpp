#include "tokenizer/piece_trie.h"

#include <algorithm>

namespace finetune {

// Finds a base where all labels' places are free, and makes room for any byte beyond it.
uint32_t PieceTrie::place(const std::vector<uint8_t>& labels) {
  auto room = [&](size_t base) {
    if (base + 256 >= nodes_.size()) nodes_.resize(std::max(nodes_.size() * 2, base + 512));
  };
  uint32_t taken = 0;
  for (uint32_t position = std::max(first_free_, uint32_t(labels[0]) + 1);; ++position) {
    uint32_t base = position - labels[0];
    room(base);
    if (nodes_[position].parent != kFree) {
      ++taken;
      continue;
    }
    bool fits = std::all_of(labels.begin(), labels.end(),
                            [&](uint8_t b) { return nodes_[base + b].parent == kFree; });
    if (!fits) continue;
    // Leave nearly full regions behind: building stays linear at the price of a few empty places.
    uint32_t seen = position - first_free_ + 1;
    if (position > first_free_ && taken * 20 >= seen * 19) first_free_ = position;
    return base;
  }
}

void PieceTrie::build(const std::vector<std::pair<std::string_view, int32_t>>& sorted) {
  struct Task {
    uint32_t node;
    size_t begin, end;  // keys that pass through the node
    size_t depth;
  };
  key_count_ = sorted.size();
  nodes_[0].parent = 0;
  std::vector<Task> tasks;
  if (!sorted.empty()) tasks.push_back({0, 0, sorted.size(), 0});
  std::vector<uint8_t> labels;
  std::vector<size_t> starts;
  for (size_t t = 0; t < tasks.size(); ++t) {
    Task task = tasks[t];
    if (sorted[task.begin].first.size() == task.depth) {
      nodes_[task.node].value = sorted[task.begin].second;
      ++task.begin;
    }
    labels.clear();
    starts.clear();
    for (size_t k = task.begin; k < task.end; ++k) {
      uint8_t label = uint8_t(sorted[k].first[task.depth]);
      if (labels.empty() || labels.back() != label) {
        labels.push_back(label);
        starts.push_back(k);
      }
    }
    if (labels.empty()) continue;
    uint32_t base = place(labels);
    nodes_[task.node].base = base;
    starts.push_back(task.end);
    for (size_t i = 0; i < labels.size(); ++i) {
      nodes_[base + labels[i]].parent = task.node;
      tasks.push_back({base + labels[i], starts[i], starts[i + 1], task.depth + 1});
    }
  }
  // Every base has room for 256 labels behind it; drop the rest.
  size_t used = nodes_.size();
  while (used > 1 && nodes_[used - 1].parent == kFree) --used;
  nodes_.resize(used + 256);
  nodes_.shrink_to_fit();
}

}  // namespace finetune

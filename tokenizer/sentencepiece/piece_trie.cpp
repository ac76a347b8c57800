// Builds the double array of the piece trie.
#include "tokenizer/sentencepiece/piece_trie.h"

#include <algorithm>

namespace finetune {

// Finds a base at which all labels' places are free, and makes room for any byte beyond it. A
// single label takes the lowest free place. Several labels search from a start that moves on after
// long searches; single labels fill the gaps. So building takes linear time.
uint32_t PieceTrie::place(const std::vector<uint8_t>& labels) {
  constexpr uint32_t kLongSearch = 64;
  auto room = [&](size_t base) {
    if (base + 256 >= nodes_.size()) nodes_.resize(std::max(nodes_.size() * 2, base + 512));
  };
  uint32_t& from = labels.size() == 1 ? lowest_free_ : search_from_;
  while (nodes_[from].parent != kFree) {
    ++from;
    room(from);
  }
  const uint32_t start = from;  // > 256, so that every base is positive
  for (uint32_t position = start;; ++position) {
    uint32_t base = position - labels[0];
    room(position);
    bool fits = std::all_of(labels.begin(), labels.end(),
                            [&](uint8_t b) { return nodes_[base + b].parent == kFree; });
    if (!fits) continue;
    if (labels.size() > 1 && position - start > kLongSearch) search_from_ = position;
    return base;
  }
}

void PieceTrie::build(const std::vector<std::pair<std::string_view, int32_t>>& sorted) {
  struct Task {
    uint32_t node;
    size_t begin, end;  // keys below this node
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
  // Every base has room for 256 labels behind it; trim the unused rest.
  size_t used = nodes_.size();
  while (used > 1 && nodes_[used - 1].parent == kFree) --used;
  nodes_.resize(used + 256);
  nodes_.shrink_to_fit();
}

}  // namespace finetune

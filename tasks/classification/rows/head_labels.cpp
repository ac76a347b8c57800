// Keeps the order of a head's labels and appends new ones.
#include "tasks/classification/rows/head_labels.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "core/text/counted.h"
#include "core/text/text.h"

namespace finetune {
namespace {

using Names = std::vector<std::string>;

constexpr size_t kMostNamed = 50;

Names lacking(const Names& labels, const Names& others) {
  const std::unordered_set<std::string_view> known(others.begin(), others.end());
  Names out;
  std::copy_if(labels.begin(), labels.end(), std::back_inserter(out),
               [&](const std::string& label) { return !known.contains(label); });
  return out;
}

std::string named(const Names& labels, const char* one, const char* several) {
  Names quoted;
  for (const std::string& label : labels) quoted.push_back(in_quotes(label));
  return concat(counted(labels.size(), one, several), ": ", join_some(quoted, kMostNamed));
}

}  // namespace

HeadLabels head_labels(const Names& own, const Names& of_data, bool extends, bool drops) {
  HeadLabels out;
  const Names absent = lacking(own, of_data);
  (drops ? out.dropped : out.idle) = absent;
  const std::unordered_set<std::string_view> dropped(out.dropped.begin(), out.dropped.end());
  for (size_t i = 0; i < own.size(); ++i) {
    if (dropped.contains(own[i])) continue;
    out.labels.push_back(own[i]);
    out.rows.push_back(int32_t(i));
  }
  if (extends) out.added = lacking(of_data, own);
  out.labels.insert(out.labels.end(), out.added.begin(), out.added.end());
  out.rows.resize(out.labels.size(), -1);
  if (out.added.empty() && out.dropped.empty()) out.rows.clear();
  return out;
}

std::string describe_head_labels(const HeadLabels& head) {
  std::string line = "the model's head is kept";
  if (!head.added.empty())
    line += concat("; it gets ", named(head.added, "new label", "new labels"));
  if (!head.dropped.empty()) line += concat("; it loses ", named(head.dropped, "label", "labels"));
  if (!head.idle.empty()) {
    line += concat("; the data lacks ", named(head.idle, "label", "labels"),
                   " (kept; --drop-labels leaves ", head.idle.size() == 1 ? "it" : "them", " out)");
  }
  return line;
}

}  // namespace finetune

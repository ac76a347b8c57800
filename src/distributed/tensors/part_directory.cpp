// Finds the process that sends each element of each tensor.
#include "distributed/tensors/part_directory.h"

#include <algorithm>

#include "core/error.h"

namespace finetune {
namespace {

using Entry = PartDirectory::Entry;

bool apart(const PartPlace& a, const PartPlace& b) {
  return a.row + a.rows <= b.row || b.row + b.rows <= a.row || a.col + a.cols <= b.col ||
         b.col + b.cols <= a.col;
}

// Assigns each element of a slice to one of its holders.
void divide(std::vector<Entry*>& holders, const std::string& name) {
  std::sort(holders.begin(), holders.end(), [](const Entry* a, const Entry* b) {
    const IndexRange &x = a->place.run, &y = b->place.run;
    if (x.begin != y.begin) return x.begin < y.begin;
    return x.end != y.end ? x.end > y.end : a->rank < b->rank;
  });
  const int64_t size = holders[0]->place.rows * holders[0]->place.cols;
  size_t next = 0;
  for (int64_t at = 0; at < size;) {
    Entry* best = nullptr;
    for (; next < holders.size() && holders[next]->place.run.begin <= at; ++next) {
      if (!best || holders[next]->place.run.end > best->place.run.end) best = holders[next];
    }
    if (!best || best->place.run.end <= at) {
      throw internal_error("no process has element ", at, " of a slice of ", name);
    }
    best->give = {at, best->place.run.end};
    at = best->give.end;
  }
}

void divide_tensor(std::vector<Entry>& entries, const Parameter& parameter) {
  std::vector<std::vector<Entry*>> slices;
  for (Entry& entry : entries) {
    auto same = std::find_if(slices.begin(), slices.end(), [&](const auto& slice) {
      return slice[0]->place.same_slice(entry.place);
    });
    if (same == slices.end()) {
      slices.push_back({&entry});
    } else {
      same->push_back(&entry);
    }
  }
  int64_t covered = 0;
  for (size_t i = 0; i < slices.size(); ++i) {
    const PartPlace& place = slices[i][0]->place;
    covered += place.rows * place.cols;
    for (size_t k = 0; k < i; ++k) {
      if (apart(place, slices[k][0]->place)) continue;
      throw internal_error("two slices of ", parameter.name, " overlap");
    }
    divide(slices[i], parameter.name);
  }
  if (covered == parameter.size()) return;
  throw internal_error("no process has ", parameter.size() - covered, " elements of ",
                       parameter.name);
}

}  // namespace

PartDirectory::PartDirectory(const ParameterTable& whole,
                             const std::vector<std::vector<PartPlace>>& parts)
    : of_rank_(parts.size()) {
  const std::vector<Parameter>& parameters = whole.parameters();
  for (auto& arena : entries_) arena.resize(parameters.size());
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    for (const PartPlace& place : parts[rank]) {
      has_[size_t(place.arena)] = true;
      auto& entries = entries_[size_t(place.arena)][size_t(place.tensor)];
      of_rank_[rank].push_back({place.arena, place.tensor, entries.size()});
      entries.push_back({int(rank), place, {}});
    }
  }
  for (size_t arena = 0; arena < 3; ++arena) {
    if (!has_[arena]) continue;
    for (size_t i = 0; i < parameters.size(); ++i) divide_tensor(entries_[arena][i], parameters[i]);
  }
}

std::vector<IndexRange> PartDirectory::given_by(int rank) const {
  std::vector<IndexRange> out;
  for (const Where& where : of_rank_[size_t(rank)]) {
    out.push_back(entries_[size_t(where.arena)][size_t(where.tensor)][where.index].give);
  }
  return out;
}

}  // namespace finetune

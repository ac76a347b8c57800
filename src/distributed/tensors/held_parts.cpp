// Cuts a process's parts of its arenas at the boundaries of the model's tensors.
#include "distributed/tensors/held_parts.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "core/error.h"

namespace finetune {
namespace {

using Numbers = std::unordered_map<std::string_view, int64_t>;  // of tensors, by name

Numbers numbers_of(const ParameterTable& whole) {
  Numbers numbers;
  for (const Parameter& parameter : whole.parameters()) {
    numbers.emplace(parameter.name, int64_t(numbers.size()));
  }
  return numbers;
}

// The place of a slice before its run is known.
PartPlace place_of(const ParameterTable& whole, const Numbers& numbers, const HeldSlice& slice) {
  const auto found = numbers.find(slice.name);
  if (found == numbers.end()) throw internal_error("the model has no tensor ", slice.name);
  const TensorSlice& extent = whole.parameters()[size_t(found->second)].slice;  // the whole tensor
  const bool inside = slice.row >= 0 && slice.rows > 0 && slice.row + slice.rows <= extent.rows &&
                      slice.col >= 0 && slice.cols > 0 && slice.col + slice.cols <= extent.cols;
  if (!inside) throw internal_error("a slice lies outside of its tensor ", slice.name);
  return {0, found->second, slice.row, slice.rows, slice.col, slice.cols, {}};
}

}  // namespace

bool PartPlace::same_slice(const PartPlace& other) const {
  return row == other.row && rows == other.rows && col == other.col && cols == other.cols;
}

bool speaks_for_weights(Engine& engine, const LayoutGroups& groups) {
  return !engine.backend().uses_host_memory() || groups.data().local_rank() == 0;
}

HeldRun all_weights(Engine& engine) {
  return {Arena::weights, {0, engine.table().size()}, engine.weights()};
}

std::vector<HeldSlice> held_slices(const ParameterTable& table) {
  std::vector<HeldSlice> slices;
  for (const Parameter& p : table.parameters()) {
    slices.push_back({p.name, p.slice.row, p.slice.rows, p.slice.col, p.slice.cols, p.offset});
  }
  return slices;
}

std::vector<HeldPart> held_parts(const ParameterTable& whole, const std::vector<HeldSlice>& slices,
                                 const std::vector<HeldRun>& runs) {
  const Numbers numbers = numbers_of(whole);
  std::vector<HeldPart> parts;
  for (const HeldSlice& slice : slices) {
    PartPlace place = place_of(whole, numbers, slice);
    for (const HeldRun& run : runs) {
      const int64_t begin = std::max(slice.offset, run.elements.begin);
      const int64_t end = std::min(slice.offset + slice.rows * slice.cols, run.elements.end);
      if (begin >= end) continue;
      place.arena = int64_t(run.arena);
      place.run = {begin - slice.offset, end - slice.offset};
      parts.push_back({place, run.data + (begin - run.elements.begin)});
    }
  }
  return parts;
}

IndexRange within(const PartPlace& place, IndexRange run, IndexRange elements, int64_t columns) {
  FINETUNE_CHECK(elements.begin % columns == 0 && elements.end % columns == 0);
  const int64_t first = std::max(elements.begin / columns, place.row) - place.row;
  const int64_t last = std::min(elements.end / columns, place.row + place.rows) - place.row;
  const IndexRange out{std::max(first * place.cols, run.begin),
                       std::min(last * place.cols, run.end)};
  return out.begin < out.end ? out : IndexRange{};
}

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

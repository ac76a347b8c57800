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

}  // namespace finetune

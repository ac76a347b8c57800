// What one process has of the model's tensors: slices of its arena, and which of their elements.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "distributed/layout/layout_groups.h"
#include "engine/engine.h"
#include "engine/model_tensors.h"

namespace finetune {

// A slice of a whole tensor in a local arena, where it lies row by row without gaps. A vector is
// one row. Slices of one tensor, of all processes, are equal or have no element in common.
struct HeldSlice {
  std::string name;  // the whole tensor's
  int64_t row = 0, rows = 0, col = 0, cols = 0;
  int64_t offset = 0;  // in the local arena
};
std::vector<HeldSlice> held_slices(const ParameterTable& table);  // of a local arena

// Elements of a local arena that this process has, and for which it speaks: of those who share
// memory one does. Elements between tensors may be among them.
struct HeldRun {
  Arena arena = Arena::weights;
  IndexRange elements;
  float* data = nullptr;  // backend memory of the first
};

// Whether this process is the one that speaks for its weights' memory. Of those who share it one
// does; who has a device of its own always does.
bool speaks_for_weights(Engine& engine, const LayoutGroups& groups);
HeldRun all_weights(Engine& engine);  // complete

// Elements of a slice, numbered in it row by row, that a process has. What processes tell each
// other: plain numbers.
struct PartPlace {
  int64_t arena = 0, tensor = 0;  // the tensor's number in the whole model's table
  int64_t row = 0, rows = 0, col = 0, cols = 0;
  IndexRange run;

  bool is_of(const TensorPiece& piece) const {
    return arena == int64_t(piece.arena) && tensor == piece.tensor;
  }
  bool same_slice(const PartPlace& other) const;
};
struct HeldPart {
  PartPlace place;
  float* data = nullptr;  // backend memory of the run
};

// Runs cut at slices, in any order of either. Error(internal) for a slice of no tensor of `whole`.
std::vector<HeldPart> held_parts(const ParameterTable& whole, const std::vector<HeldSlice>& slices,
                                 const std::vector<HeldRun>& runs);

// Those of `run` (elements of the place's slice) that lie in `elements`, whole rows of a tensor of
// so many columns: neighbours, since they are.
IndexRange within(const PartPlace& place, IndexRange run, IndexRange elements, int64_t columns);

// visit(element of the piece, element of the run, count): where neighbouring elements of a run,
// which lie in the piece, have their places in it, row by row.
template <typename Visit>
void each_row(const PartPlace& place, IndexRange run, IndexRange elements, int64_t columns,
              Visit&& visit) {
  for (int64_t at = run.begin; at < run.end;) {
    const int64_t row = at / place.cols, col = at % place.cols;
    const bool whole_rows = place.cols == columns;
    const int64_t count = whole_rows ? run.end - at : std::min(place.cols - col, run.end - at);
    visit((place.row + row) * columns + place.col + col - elements.begin, at - run.begin, count);
    at += count;
  }
}

}  // namespace finetune

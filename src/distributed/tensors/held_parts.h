// The parts of the model's tensors that processes hold: slices of their arenas, and which process
// sends which elements.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "distributed/layout/layout_groups.h"
#include "engine/engine.h"
#include "engine/model_tensors.h"

namespace finetune {

// A slice of a whole tensor, stored row by row without gaps in a local arena. A vector is one row.
// Any two slices of one tensor, over all processes, are equal or disjoint.
struct HeldSlice {
  std::string name;  // of the whole tensor
  int64_t row = 0, rows = 0, col = 0, cols = 0;
  int64_t offset = 0;  // in the local arena
};
std::vector<HeldSlice> held_slices(const ParameterTable& table);  // of a local arena

// Elements of a local arena that this process holds and reports; of processes that share memory,
// only one reports. Elements between tensors may be included.
struct HeldRun {
  Arena arena = Arena::weights;
  IndexRange elements;
  float* data = nullptr;  // the first element, in backend memory
};

// Returns whether this process reports its weights' memory. Of processes that share memory one
// does; a process with its own device always does.
bool speaks_for_weights(Engine& engine, const LayoutGroups& groups);
HeldRun all_weights(Engine& engine);  // complete

// Elements that a process holds of a slice, numbered row by row within it. Processes exchange these
// plain numbers.
struct PartPlace {
  int64_t arena = 0, tensor = 0;  // index of the tensor in the whole model's table
  int64_t row = 0, rows = 0, col = 0, cols = 0;
  IndexRange run;

  bool is_of(const TensorPiece& piece) const {
    return arena == int64_t(piece.arena) && tensor == piece.tensor;
  }
  bool same_slice(const PartPlace& other) const;
};
struct HeldPart {
  PartPlace place;
  float* data = nullptr;  // of the run, in backend memory
};

// Cuts runs at slices; both may be in any order. Error(internal) if a slice belongs to no tensor of
// `whole`.
std::vector<HeldPart> held_parts(const ParameterTable& whole, const std::vector<HeldSlice>& slices,
                                 const std::vector<HeldRun>& runs);

// The elements of `run` (in the place's slice) that lie in `elements`, whole rows of a tensor with
// `cols` columns. They are contiguous.
IndexRange within(const PartPlace& place, IndexRange run, IndexRange elements, int64_t columns);

// Calls visit(element of the piece, element of the run, count) for contiguous elements of a run
// that lie in the piece, row by row.
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

// Knows which process holds which parts of the model's tensors, and which process sends an element.
class PartDirectory {
 public:
  struct Entry {
    int rank = 0;
    PartPlace place;
    IndexRange give;  // of the place's run; each element of a tensor is sent once
  };

  // parts[rank]: the parts of that process, in its order. Every element of each tensor must be held
  // by some process, for each arena that any process holds; else Error(internal) names it. Of
  // several holders, the one with the most elements sends, then the lowest rank.
  PartDirectory(const ParameterTable& whole, const std::vector<std::vector<PartPlace>>& parts);

  bool has(Arena arena) const { return has_[size_t(arena)]; }
  // In order of ranks, then in each process's order.
  const std::vector<Entry>& entries(const TensorPiece& piece) const {
    return entries_[size_t(piece.arena)][size_t(piece.tensor)];
  }
  // The elements that a process sends of each of its parts, in its order.
  std::vector<IndexRange> given_by(int rank) const;

 private:
  bool has_[3] = {};
  std::vector<std::vector<Entry>> entries_[3];  // by arena and tensor
  struct Where {
    int64_t arena, tensor;
    size_t index;
  };
  std::vector<std::vector<Where>> of_rank_;
};

}  // namespace finetune

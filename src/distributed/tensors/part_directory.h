// Which process holds which parts of the model's tensors, and which of them sends each element.
#pragma once

#include <vector>

#include "distributed/tensors/held_parts.h"

namespace finetune {

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
  // What each part of a process sends, in its order.
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

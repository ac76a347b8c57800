// Which process has which parts of the model's tensors, and which of them gives what is wanted.
#pragma once

#include <vector>

#include "distributed/tensors/held_parts.h"

namespace finetune {

class PartDirectory {
 public:
  struct Entry {
    int rank = 0;
    PartPlace place;
    IndexRange give;  // of the place's run: each element of a tensor is given once
  };

  // parts[rank]: what that process has, in its order. Every element of a tensor must be had by
  // somebody, of arenas that anybody has: else Error(internal) naming it. Where several have an
  // element, one that has more of them gives it, then the lower rank.
  PartDirectory(const ParameterTable& whole, const std::vector<std::vector<PartPlace>>& parts);

  bool has(Arena arena) const { return has_[size_t(arena)]; }
  // In order of ranks, then as each process has them.
  const std::vector<Entry>& entries(const TensorPiece& piece) const {
    return entries_[size_t(piece.arena)][size_t(piece.tensor)];
  }
  // What each of a process's parts gives, in its order.
  std::vector<IndexRange> given_by(int rank) const;

 private:
  bool has_[3] = {};
  std::vector<std::vector<Entry>> entries_[3];  // of each arena and tensor
  struct Where {
    int64_t arena, tensor;
    size_t index;
  };
  std::vector<std::vector<Where>> of_rank_;
};

}  // namespace finetune

// The parameter table: every trainable tensor once, in the order in which gradients become ready.
// Loading, optimizer, clipping, checkpoints, export and reduction are loops over it. Values live in
// flat arenas of size() floats, one each for weights, gradients, m and v. A table for inference may
// have the weights of matrix products in bf16, two in the place of a float.
//
// A table is of a part of the model (model_part.h): its arenas have no more than that. Where
// tensors are cut into tensor shards, each shard's slice of a tensor is an entry with its name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/numeric/index_range.h"
#include "core/numeric/tensor.h"
#include "model/config.h"
#include "model/head.h"
#include "model/model_part.h"

namespace finetune {

inline constexpr int64_t kFloatBytes = sizeof(float);  // an element of an arena
inline constexpr int kReplicated = -1;  // in place of a tensor shard: every tensor rank has it

// Rows and columns of a whole tensor; a vector is one row.
struct TensorSlice {
  int64_t row = 0, rows = 0, col = 0, cols = 0;
  friend bool operator==(const TensorSlice&, const TensorSlice&) = default;
};

// The floats of an arena that `count` values take; an even number of bf16.
constexpr int64_t floats_of(int64_t count, DType dtype) {
  return dtype == DType::bf16 ? count / 2 : count;
}

struct Parameter {
  enum class Init { zeros, ones, normal };  // normal: N(0, initializer_range)
  std::string name;            // Hugging Face's: Architecture::module_of, then .weight or .bias
  std::vector<int64_t> shape;  // {out, in} or {n}, of what is in the arena
  std::vector<int64_t> whole_shape;  // of the whole tensor
  TensorSlice slice;                 // of the whole tensor: what is in the arena, row-major
  int64_t offset = 0;                // in floats, in every arena
  DType dtype = DType::f32;          // of its values there
  bool decay = false;                // weight decay: not for biases and LayerNorm
  // 0 embeddings, 1..L encoder layers, L+1 pooler and head. Shared weights have the lowest layer
  // that uses them, where the backward pass completes their gradient.
  int layer = 0;
  int shard = kReplicated;  // tensor shard that it belongs to
  Init init = Init::normal;
  double deviation = 0;  // of normal values; 0: initializer_range
  double cutoff = 0;     // values are within so many deviations; 0: there is no limit
  Role role = Role::word_embeddings;
  ParameterPart part = ParameterPart::weight;
  bool head = false;      // belongs to the head (pooler included)
  int64_t zero_row = -1;  // row that initialize() leaves zero: the padding token's embedding

  int64_t size() const { return slice.rows * slice.cols; }
  int64_t floats() const { return floats_of(size(), dtype); }  // of an arena
  bool whole() const { return shape == whole_shape; }
};

// Neighbouring parameters whose norm blocks (ops/backend.h) are theirs alone, so that blocks are
// the same in every part that has the region: the head, a layer's replicated tensors, those of one
// of its tensor shards, the embeddings without words, the word embedding.
struct Region {
  IndexRange elements;  // of the arena, from one multiple of kNormBlock to the next region
  int64_t whole = 0;    // where it begins in the arena of the whole model with the same shards
  int layer = 0;
  int shard = kReplicated;
};

class ParameterTable {
 public:
  // Regions start at multiples of kNormBlock; gaps stay zero. Of a layer and tensor shard query,
  // key and value lie side by side without a gap (weights, then biases), so that the three can be
  // multiplied as one (3H/V, H) matrix. Other tensors start at multiples of 16. Of V shards each
  // has H/V rows of query, key and value, I/V of the inner layer (and of its gate), so many columns
  // of attention output and output, each slice a contiguous matrix; their biases, added once, are
  // shard 0's. V must divide the heads and the intermediate size.
  // Roles that share one tensor (Module) are one entry if V is 1, named by the first of them. If
  // not, each role's slice of it is an entry with its name; they lie side by side as well.
  // `products`: f32, or bf16 for weights that are read by Backend::linear and its like alone, but
  // for those with an odd number of values.
  ParameterTable(const EncoderConfig& config, Head head, const ModelPart& part,
                 DType products = DType::f32);
  ParameterTable(const EncoderConfig& config, Head head);  // the whole model, uncut

  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::vector<Region>& regions() const { return regions_; }  // in the arena's order
  int64_t size() const { return size_; }  // floats of an arena, gaps included (kept zero)
  int64_t count() const;                  // trainable values, without gaps
  // The first slice that there is; nullptr if there is none.
  const Parameter* find(std::string_view name) const;
  // `layer`: 0 for the first encoder layer, of roles of encoder layers; of layers that share
  // weights the lowest (EncoderConfig::weights_layer). `shard`: of tensors
  // that are cut; nullptr if the part does not have it.
  const Parameter* find(Role role, ParameterPart part, int64_t layer = 0, int shard = 0) const;
  const Architecture& architecture() const { return *architecture_; }
  Head head() const { return head_; }  // the model's, also where the part has none
  const ModelPart& part() const { return part_; }

  // View of one parameter in an arena: (out, in), or (1, n).
  Tensor view(float* arena, const Parameter& parameter) const;
  Tensor view(float* arena, std::string_view name) const;  // a name that is not there is a bug

 private:
  std::vector<Parameter> parameters_;
  std::vector<Region> regions_;
  int64_t size_ = 0;
  const Architecture* architecture_;
  Head head_;
  ModelPart part_;
};

// Fills one parameter by its initializer, as Hugging Face's _init_weights: normal values by Box and
// Muller from Philox(seed; initial_weights, name, element of the whole tensor), so that they depend
// neither on the table nor on what else is initialized.
void initialize(const ParameterTable& table, const Parameter& parameter, double initializer_range,
                uint64_t seed, float* arena);
// All of them.
void initialize(const ParameterTable& table, double initializer_range, uint64_t seed, float* arena);

}  // namespace finetune

// The parameter table: every trainable tensor once, in the order in which gradients become ready.
// Loading, optimizer, clipping, checkpoints, export and reduction are loops over it. Values live in
// flat arenas of size() floats, one each for weights, gradients, m and v. A table for inference may
// have the weights of matrix products in bf16, two in the place of a float.
//
// A table may cover a part of the model (model_part.h); its arenas then have only that part. If
// tensors are cut into tensor shards, each shard's slice is an entry with the tensor's name.
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
inline constexpr int kReplicated = -1;  // instead of a tensor shard: every tensor rank has it

// Rows and columns of a whole tensor; a vector is one row.
struct TensorSlice {
  int64_t row = 0, rows = 0, col = 0, cols = 0;
  friend bool operator==(const TensorSlice&, const TensorSlice&) = default;
};

// The floats of an arena that `count` values need; of bf16 values the number must be even.
constexpr int64_t floats_of(int64_t count, DType dtype) {
  return dtype == DType::bf16 ? count / 2 : count;
}

struct Parameter {
  enum class Init { zeros, ones, normal };  // normal: N(0, initializer_range)
  std::string name;            // Hugging Face's: Architecture::module_of, then .weight or .bias
  std::vector<int64_t> shape;  // {out, in} or {n}, of the slice in the arena
  std::vector<int64_t> whole_shape;  // of the whole tensor
  TensorSlice slice;                 // the part of the whole tensor in the arena, row-major
  int64_t offset = 0;                // in floats, in every arena
  DType dtype = DType::f32;          // of the values in the arena
  bool decay = false;                // weight decay: not for biases and LayerNorm
  // 0 embeddings, 1..L encoder layers, L+1 pooler and head. Shared weights have the lowest layer
  // that uses them, where the backward pass completes their gradient.
  int layer = 0;
  int shard = kReplicated;  // tensor shard that it belongs to
  Init init = Init::normal;
  double deviation = 0;  // of normal values; 0: initializer_range
  double cutoff = 0;     // values are within this many deviations; 0: there is no limit
  Role role = Role::word_embeddings;
  ParameterPart part = ParameterPart::weight;
  bool head = false;      // belongs to the head (pooler included)
  int64_t zero_row = -1;  // row that initialize() leaves zero: the padding token's embedding

  int64_t size() const { return slice.rows * slice.cols; }
  int64_t floats() const { return floats_of(size(), dtype); }  // of an arena
  bool whole() const { return shape == whole_shape; }
};

// Neighbouring parameters that share no norm block (ops/backend.h) with others, so that every part
// with the region has the same blocks. Regions: the head, a layer's replicated tensors, a layer's
// tensors of one tensor shard, the embeddings without words, the word embedding.
struct Region {
  IndexRange elements;  // of the arena, from one multiple of kNormBlock to the next region
  int64_t whole = 0;    // where it begins in the arena of the whole model with the same shards
  int layer = 0;
  int shard = kReplicated;
};

class ParameterTable {
 public:
  // Regions start at multiples of kNormBlock; gaps stay zero. In each layer and tensor shard query,
  // key and value lie side by side without a gap (weights, then biases), so that the three can be
  // multiplied as one (3H/V, H) matrix. Other tensors start at multiples of 16. Each of V shards
  // has H/V rows of query, key and value, I/V rows of the inner layer (and of its gate), H/V
  // columns of attention output, and I/V columns of output; each slice is a contiguous matrix. The
  // biases of the latter two are added once, so shard 0 has them. V must divide the heads and the
  // intermediate size. Roles that share one tensor (Module) are one entry, named by the first role,
  // if V is 1; else each role's slice is an entry with the tensor's name, side by side as well.
  // `products`: f32, or bf16 for weights that only matrix products read (is_product), except those
  // with an odd number of values.
  ParameterTable(const EncoderConfig& config, Head head, const ModelPart& part,
                 DType products = DType::f32);
  ParameterTable(const EncoderConfig& config, Head head);  // the whole model, uncut

  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::vector<Region>& regions() const { return regions_; }  // in the arena's order
  int64_t size() const { return size_; }  // floats of an arena, gaps included (kept zero)
  int64_t count() const;                  // trainable values, without gaps
  // The first entry with this name; nullptr if there is none.
  const Parameter* find(std::string_view name) const;
  // Returns nullptr if the part does not have the tensor. `layer`: for roles of encoder layers, 0
  // for the first; if layers share weights, the lowest of them (EncoderConfig::weights_layer).
  // `shard`: for tensors that are cut.
  const Parameter* find(Role role, ParameterPart part, int64_t layer = 0, int shard = 0) const;
  const Architecture& architecture() const { return *architecture_; }
  Head head() const { return head_; }  // the model's, even if the part does not have it
  const ModelPart& part() const { return part_; }

  // View of one parameter in an arena: (out, in), or (1, n).
  Tensor view(float* arena, const Parameter& parameter) const;
  Tensor view(float* arena, std::string_view name) const;  // the name must exist

 private:
  std::vector<Parameter> parameters_;
  std::vector<Region> regions_;
  int64_t size_ = 0;
  const Architecture* architecture_;
  Head head_;
  ModelPart part_;
};

// Fills one parameter by its initializer, like Hugging Face's _init_weights. Normal values are made
// by Box and Muller from Philox(seed; initial_weights, name, element of the whole tensor), so they
// do not depend on the table or on other parameters.
void initialize(const ParameterTable& table, const Parameter& parameter, double initializer_range,
                uint64_t seed, float* arena);
// Fills all parameters.
void initialize(const ParameterTable& table, double initializer_range, uint64_t seed, float* arena);

}  // namespace finetune

// The parameter table: every trainable tensor once, in the order in which gradients become ready.
// Loading, optimizer, clipping, checkpoints, export and reduction are loops over it. Values live in
// flat arenas of size() floats, one each for weights, gradients, m and v.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/numeric/tensor.h"
#include "model/config.h"
#include "model/head.h"

namespace finetune {

inline constexpr int64_t kFloatBytes = sizeof(float);  // an element of an arena

struct Parameter {
  enum class Init { zeros, ones, normal };  // normal: N(0, initializer_range)
  std::string name;            // Hugging Face's: Architecture::module_of, then .weight or .bias
  std::vector<int64_t> shape;  // {out, in} or {n}
  int64_t offset = 0;          // in elements, in every arena
  bool decay = false;          // weight decay: not for biases and LayerNorm
  int layer = 0;               // 0 embeddings, 1..L encoder layers, L+1 pooler and head
  Init init = Init::normal;
  Role role = Role::word_embeddings;
  ParameterPart part = ParameterPart::weight;
  bool head = false;      // belongs to the head (pooler included)
  int64_t zero_row = -1;  // row that initialize() leaves zero: the padding token's embedding

  int64_t size() const {
    int64_t n = 1;
    for (int64_t d : shape) n *= d;
    return n;
  }
};

class ParameterTable {
 public:
  // Query, key and value of a layer lie side by side without a gap (weights, then biases), so that
  // the three can be multiplied as one (3H, H) matrix. Other tensors start at multiples of 16.
  ParameterTable(const BertConfig& config, Head head);

  const std::vector<Parameter>& parameters() const { return parameters_; }
  int64_t size() const { return size_; }  // elements of an arena, gaps included (kept zero)
  int64_t count() const;                  // trainable values, without gaps
  const Parameter* find(std::string_view name) const;  // nullptr if there is none
  // `layer`: 0 for the first encoder layer, of roles that each of them has.
  const Parameter* find(Role role, ParameterPart part, int64_t layer = 0) const;
  const Architecture& architecture() const { return *architecture_; }
  Head head() const { return head_; }

  // View of one parameter in an arena: (out, in), or (1, n).
  Tensor view(float* arena, const Parameter& parameter) const;
  Tensor view(float* arena, std::string_view name) const;  // a name that is not there is a bug

 private:
  std::vector<Parameter> parameters_;
  int64_t size_ = 0;
  const Architecture* architecture_;
  Head head_;
};

// Fills one parameter by its initializer, as Hugging Face's _init_weights: normal values by Box and
// Muller from Philox(seed; initial_weights, name, element), so that they depend neither on the
// table nor on what else is initialized.
void initialize(const ParameterTable& table, const Parameter& parameter, double initializer_range,
                uint64_t seed, float* arena);
// All of them.
void initialize(const ParameterTable& table, double initializer_range, uint64_t seed, float* arena);

}  // namespace finetune

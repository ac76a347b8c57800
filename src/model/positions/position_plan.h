// Memory of an activation plan for position data that layers share: the position bias, the table of
// relative positions, and the convolution.
#pragma once

#include "model/activations.h"

namespace finetune {

// Hands out 64-byte aligned offsets one after the other.
class Allocator {
 public:
  explicit Allocator(DType type, int64_t begin = 0) : type_(type), begin_(begin), end_(begin) {}
  int64_t take(int64_t floats) {
    int64_t offset = end_;
    end_ += (floats + 15) / 16 * 16;
    return offset;
  }
  // Takes `count` values of the backend's activation_type.
  int64_t take_typed(int64_t count) { return take(floats_of(count)); }
  int64_t floats_of(int64_t count) const {
    return (count * int64_t(size_of(type_)) + 3) / int64_t(sizeof(float));
  }
  // Whether products get rounded copies, in bf16.
  bool is_rounded() const { return type_ == DType::bf16; }
  int64_t take_rounded(int64_t count) { return is_rounded() ? take_typed(count) : kAbsent; }
  int64_t end() const { return end_; }
  int64_t used() const { return end_ - begin_; }

 private:
  DType type_;
  int64_t begin_, end_;
};

// For the convolution, if the chunk has the embeddings: results that are kept, and working memory.
void take_convolved(ActivationPlan& plan, Allocator& memory, const EncoderConfig& config,
                    const ModelChunk& chunk, int64_t tokens);
void take_taps(ActivationPlan& plan, Allocator& memory, const EncoderConfig& config,
               const ModelChunk& chunk, int64_t tokens, bool training);
void take_bias_values(ActivationPlan& plan, Allocator& memory, const EncoderConfig& config,
                      const ModelChunk& chunk, int64_t tokens);
// For the table that a chunk without embeddings receives.
void take_bias_table(ActivationPlan& plan, Allocator& memory, const EncoderConfig& config,
                     const ModelChunk& chunk);
void take_relative(ActivationPlan& plan, Allocator& memory, const EncoderConfig& config,
                   const ModelChunk& chunk, int64_t tokens, bool training);

}  // namespace finetune

// A PackedBatch in the backend's memory, and views of its arrays.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/numeric/packed_batch.h"
#include "model/blocks.h"
#include "model/head.h"
#include "ops/backend.h"

namespace finetune {

// Buffers are allocated once for the largest micro-batch.
class DeviceBatch {
 public:
  DeviceBatch(Backend& backend, int64_t max_tokens, int64_t max_sequences);
  static int64_t words(int64_t max_tokens, int64_t max_sequences);  // of 4 bytes, in the buffer
  // Each sample's loss is scaled by `loss_scale` times its weight; fillers have 0. `embeddings`
  // decides on types and positions.
  void upload(const PackedBatch& batch, float loss_scale = 1,
              const EmbeddingBlock& embeddings = {});

  int64_t tokens() const { return tokens_; }
  int64_t sequences() const { return sequences_; }
  const int32_t* ids() const;
  const int32_t* types() const;
  const uint32_t* positions() const;
  int64_t first_position() const { return first_position_; }  // of a text's first counted token
  const int32_t* order() const;
  const int32_t* first_rows() const;          // (B) row of each sequence's first token
  Segments segments() const;                  // all tokens
  Segments first_segments() const;            // one row per sequence: offsets 0, 1, ..., B
  const uint32_t* samples() const;            // (B)
  RowNames token_names() const;               // (T)
  RowNames first_names() const;               // (B) position 0
  LossScale loss_scale() const;               // (B)
  Tensor loss_weights() const;                // (1, B), or absent: all 1
  int64_t scored() const { return scored_; }  // M
  const int32_t* scored_rows() const;         // (M)
  const int32_t* targets() const;             // (M)
  LossScale scored_loss_scale() const;        // (M)

 private:
  const uint32_t* token_array(int64_t index) const;
  const uint32_t* sequence_array(int64_t index) const;
  const uint32_t* scored_array(int64_t index) const;

  Backend& backend_;
  std::shared_ptr<void> memory_;
  std::vector<uint32_t> host_;  // uploaded in one piece
  int64_t max_tokens_, max_sequences_;
  int64_t tokens_ = 0, sequences_ = 0, scored_ = 0, max_length_ = 0, first_position_ = 0;
  bool weighted_ = false;
};

// Rows of the logits of a micro-batch.
int64_t logit_rows(Head head, const DeviceBatch& batch);

}  // namespace finetune

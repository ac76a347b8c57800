// What each process needs to train a task: tokenized samples, targets and the loss. The arrays are
// flat: one process of a host reads and tokenizes, and all of them share the memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/numeric/packed_batch.h"
#include "model/encoder.h"
#include "ops/backend.h"
#include "tasks/target_scale.h"
#include "tasks/task.h"

namespace finetune {

// A plain struct, since processes share it. masked_language/masking.h says which words are hidden.
struct MaskingOptions {
  uint64_t seed = 42;
  double probability = 0.15;
  int64_t words = 0;     // number of ids
  int32_t mask_id = -1;  // of [MASK]
  bool whole_words = true;
};

// The kind of an id.
enum class WordKind : uint8_t { begins, continues, special };

// Views: the caller owns the memory. Arrays that a task does not use are empty.
struct TrainingArrays {
  TaskKind kind = TaskKind::classification;
  ProblemType problem = ProblemType::single_label;  // classification
  Head head;
  float label_smoothing = 0;
  TargetScale target_scale;  // regression: the scale of `targets`
  SampleView samples;
  std::span<const int32_t> labels;       // (N) single-label; qa: first answer's start
  std::span<const int32_t> ends;         // (N) qa
  std::span<const float> targets;        // (N) regression
  std::span<const int64_t> set_offsets;  // (N+1) multi-label: sample i has set_ids[o[i], o[i+1])
  std::span<const int32_t> set_ids;
  std::span<const float> class_weights;   // (C)
  std::span<const int32_t> head_rows;     // (C) Task::head_rows()
  std::span<const float> sample_weights;  // (N) classification: of losses; empty: all 1
  std::span<const uint8_t> word_kinds;    // (words) masked words: WordKind of each id
  MaskingOptions masking;                 // masked words
};

// All arrays in one block of memory that processes share. It has no pointers, so each process may
// map it at any 64-byte aligned address. arrays_in() views a block that copy_arrays() has filled.
size_t block_bytes(const TrainingArrays& arrays);
TrainingArrays copy_arrays(const TrainingArrays& arrays, void* block);
TrainingArrays arrays_in(const void* block);
// The SHA-256 of all arrays, in hexadecimal.
std::string digest_of(const TrainingArrays& arrays);

// Returns the fold of each sample, from 0. Samples with equal tokens are in the same fold. The
// different samples of each label are spread evenly. Error(data) if a fold would be empty.
std::vector<uint8_t> folds_of_samples(const TrainingArrays& arrays, int folds);

class Objective {
 public:
  virtual ~Objective() = default;
  virtual const SampleView& samples() const = 0;
  // Call before the batches of an epoch: some tasks draw new random numbers for each epoch.
  virtual void begin_epoch(int64_t /*epoch*/) {}
  // Adds data to a packed micro-batch that the samples lack: hidden words, weights.
  virtual void complete(PackedBatch& /*batch*/) const {}
  // The denominator of the loss over these samples (by index): their number, the sum of the weights
  // of samples or classes, or the number of hidden pieces.
  virtual double loss_denominator(std::span<const uint32_t> indices) const = 0;
  // The number of losses of a micro-batch.
  virtual int64_t losses(const DeviceBatch& device) const { return device.sequences(); }
  // Allocates memory for the targets of a micro-batch of up to `max_sequences`.
  virtual void reserve(Backend& backend, int64_t max_sequences) = 0;
  // Copies a micro-batch's targets into that memory.
  virtual void upload_targets(Backend& backend, const PackedBatch& batch) = 0;
  // Computes the losses of the micro-batch whose targets were uploaded last: (1, losses()), and
  // dlogits = device.loss_scale() * gradient. Uploads nothing.
  virtual void loss(Backend& backend, const DeviceBatch& device, Tensor logits, Tensor losses,
                    Tensor dlogits) = 0;
};

// Makes the objective for the arrays' task (registry.cpp). The arrays' memory must outlive it.
std::unique_ptr<Objective> make_objective(const TrainingArrays& arrays);

}  // namespace finetune

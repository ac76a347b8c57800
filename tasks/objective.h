// What training needs of a task, on every process: tokenized samples, their targets and the loss.
// It is made of flat arrays, which one process of a host reads and tokenizes and all of them share.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/packed_batch.h"
#include "model/bert.h"
#include "ops/backend.h"
#include "tasks/task.h"

namespace finetune {

// Views; who holds the memory is the caller's business. What a task does not have is empty.
struct TrainingArrays {
  TaskKind kind = TaskKind::classification;
  int64_t problem = 0;  // classification: ProblemType
  Head head;
  float label_smoothing = 0;
  SampleView samples;                      // core/packed_batch.h: views of ids, offsets, second
  std::span<const int32_t> labels;         // (N) single-label; qa: first answer's start
  std::span<const int32_t> ends;           // (N) qa
  std::span<const float> targets;          // (N) regression
  std::span<const int64_t> set_offsets;    // (N+1) multi-label: sample i has set_ids[o[i], o[i+1])
  std::span<const int32_t> set_ids;
  std::span<const float> class_weights;    // (C)
};

// All arrays in one block of memory, which can be shared: its size, copying into it (`block` is
// 64-byte aligned), and the views of a block that was filled by copy_arrays.
size_t block_bytes(const TrainingArrays& arrays);
TrainingArrays copy_arrays(const TrainingArrays& arrays, void* block);
TrainingArrays arrays_in(const void* block);

class Objective {
 public:
  virtual ~Objective() = default;
  virtual const SampleView& samples() const = 0;
  // The denominator of the loss over these samples (by index): their number, or with class weights
  // the sum of the weights of their labels.
  virtual double loss_denominator(std::span<const uint32_t> indices) const = 0;
  // Memory for the targets of a micro-batch of up to this many sequences.
  virtual void reserve(Backend& backend, int64_t max_sequences) = 0;
  // Losses of a micro-batch: (1, B) of `losses`, and dlogits = scale * gradient.
  virtual void loss(Backend& backend, const PackedBatch& batch, const DeviceBatch& device,
                    Tensor logits, float scale, Tensor losses, Tensor dlogits) = 0;
};

// `arrays` must outlive the objective.
std::unique_ptr<Objective> make_objective(const TrainingArrays& arrays);

}  // namespace finetune

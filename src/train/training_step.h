// One update: forward and backward over the global batch's shards and micro-batches, ordered sum,
// clipping, AdamW.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tasks/objective.h"
#include "train/engine.h"
#include "train/lazy_rows.h"
#include "train/tree_sum.h"

namespace finetune {

struct StepOptions {
  uint64_t seed = 42;
  int64_t virtual_shards = 1;
  int64_t micro_batch_tokens = 0;
  double dropout = -1;         // < 0: the model's own probabilities
  double max_grad_norm = 1.0;  // 0: no clipping
  double weight_decay = 0.01;
  double adam_beta1 = 0.9;
  double adam_beta2 = 0.999;
  double adam_epsilon = 1e-8;
  double layer_lr_decay = 1.0;
  int lowest_layer = 0;  // layers below are frozen: neither gradient nor update
};

struct StepResult {
  double loss = 0;
  double gradient_norm = 0;  // before clipping
  int64_t tokens = 0;
  bool finite = true;  // false: loss or norm is not, and nothing was updated
};

class TrainingStep {
 public:
  // Allocates gradients and optimizer state; `engine` and `objective` must outlive this.
  TrainingStep(Engine& engine, Objective& objective, const StepOptions& options,
               int64_t batch_size);
  ~TrainingStep();
  TrainingStep(const TrainingStep&) = delete;
  TrainingStep& operator=(const TrainingStep&) = delete;

  // Update number `step` (0 for the first) on these training samples at this learning rate.
  StepResult run(int64_t step, std::span<const uint32_t> batch, double learning_rate);

  // Arenas of engine.table(), complete as engine.weights() is. Pointers stay valid; what is behind
  // them is complete until the next run().
  float* first_moments();
  float* second_moments();

 private:
  void add_shard_gradient(std::span<const uint32_t> shard, uint32_t first_place,
                          const DropoutPlan* dropout, float scale, float* gradients);
  void settle();
  void need_rows(std::span<const uint32_t> batch);
  double norm_of(float* gradients);
  void update(int64_t step, double learning_rate, float gradient_scale, float* gradients);

  Engine& engine_;
  Objective& objective_;
  StepOptions options_;
  GradientTree tree_;
  std::shared_ptr<void> m_, v_;
  const Parameter& words_;
  std::unique_ptr<LazyRows> lazy_words_;  // null if the word embedding is frozen
  std::shared_ptr<void> losses_;          // (1, largest micro-batch)
  std::vector<float> host_losses_;
  std::vector<double> shard_losses_;
  std::vector<int64_t> lengths_;
  std::vector<double> block_sums_;
  PackedBatch batch_;
};

}  // namespace finetune

// Builds a learner: engine and weights, tensor sums, buffers, links, and the plan of its stage.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/pretrained.h"
#include "train/training_run.h"

namespace finetune {

// This process's part of the model.
ModelPart own_part(const Machine& machine, const Settings& settings);

// Micro-batches whose activations this process keeps at once.
int64_t activation_slots(const Machine& machine, const Settings& settings);

// Returns the sum over tensor ranks, for the largest micro-batches of training and evaluation; null
// if one process has all tensor shards. Without `peers` it goes through the host's memory.
// Collective over the tensor ranks.
std::unique_ptr<CountedTensorSum> make_tensor_sum(const Machine& machine, const Settings& settings,
                                                  Backend& backend, const LayoutPeers* peers);

// Checks that the model has the weights, and on rank 0 that the disk has room for the run's files.
// `source`: as in load_weights. Collective.
void check_weights_and_disk(const Machine& machine, const Settings& settings,
                            const TrainingArrays& arrays, const WeightSource* source);

// Makes the learner's engine and its links to other devices, and loads the pretrained weights.
// `source`: null if another process reads the weights. Returns what was loaded. Collective.
PretrainedReport load_weights(const Machine& machine, const Settings& settings,
                              const TrainingArrays& arrays, const WeightSource* source,
                              std::unique_ptr<Backend> backend, Learner& learner);

// Allocates buffers for the largest micro-batches of training and evaluation, and makes the links
// between stages. The learner has its engine and objective. Collective.
void reserve_buffers(const Machine& machine, const Settings& settings, Learner& learner);

// The work of this stage in a step. The plan refers to the machine and the learner.
StagePlan stage_plan(const Machine& machine, const Settings& settings, const Learner& learner);

}  // namespace finetune

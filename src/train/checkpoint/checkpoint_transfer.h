// Gathers the tensors of a run's model on rank 0, and saves and loads checkpoints. Other processes
// exchange their tensors with rank 0 in bounded pieces: they need no shared file system, and no
// process needs the whole model.
#pragma once

#include <filesystem>
#include <functional>

#include "engine/model_tensors.h"
#include "train/training_run.h"

namespace finetune {

enum class WithMoments { no, yes };
// Calls action(tensors) on rank 0, while the other processes serve it. An error of the action ends
// the command everywhere. Collective.
void with_model_tensors(const Machine& machine, const Learner& learner, WithMoments moments,
                        const std::function<void(ModelTensors&)>& action);

// Write a checkpoint, or fill the learner's weights (and moments) from one. Only rank 0 uses
// `path`. Errors and `verified`: as in write_checkpoint and read_checkpoint. Collective.
void save_checkpoint(const Machine& machine, const Learner& learner, const CheckpointState& state,
                     const std::filesystem::path& path);
void load_checkpoint(const Machine& machine, const Learner& learner,
                     const std::filesystem::path& path, WithMoments moments, bool verified);

}  // namespace finetune

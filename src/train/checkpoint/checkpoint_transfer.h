// The tensors of a run's model on rank 0, and the checkpoints that are made of them.
// What other processes have of them goes to and comes from rank 0 in bounded pieces, so that no
// file system need be shared and nobody need have the whole model.
#pragma once

#include <filesystem>
#include <functional>

#include "engine/model_tensors.h"
#include "train/session.h"

namespace finetune {

// Collective. action(tensors) on rank 0; others than rank 0 have no tensors to look at and serve.
// An error of the action ends the command everywhere.
enum class WithMoments { no, yes };
void with_model_tensors(Session& session, WithMoments moments,
                        const std::function<void(ModelTensors&)>& action);

// Both collective, after which the file, or the arenas, are complete. Of others than rank 0 `path`
// is not read. Errors as write_checkpoint and read_checkpoint.
void save_checkpoint(Session& session, const std::filesystem::path& path);
// With or without moments; `verified` as in read_checkpoint.
void load_checkpoint(Session& session, const std::filesystem::path& path, bool moments,
                     bool verified);

}  // namespace finetune

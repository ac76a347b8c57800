// One checkpoint: all that a run needs to continue bit for bit. It is an HDF5 file behind a seal
// that detects any changed or missing byte (sealed_file.h). It is written whole or not at all.
//
//   /weights/<HF name>, /m/<HF name>, /v/<HF name>   float32, contiguous, the parameter's shape
//   /options      the run's config.toml, one text      /labels   the label map, in order of id
//   attributes of /: step, epoch, ...                  attributes of /totals: sums of the loop
//
// Tensors are stored by name. So a run can read them with another layout of the arenas, with
// another number of processes, or with parts of the model in each (engine/model_tensors.h). Equal
// content gives equal bytes. Memory: tensors stream between the file and the arenas.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "engine/model_tensors.h"
#include "model/parameters.h"

namespace finetune {

// Name in CheckpointState::totals of the time when the run began, in seconds since 1970.
inline constexpr const char* kStartedTotal = "started";

struct CheckpointState {
  int64_t step = 0;           // updates done
  int64_t epoch = 0;          // of the next step, counted from 0
  int64_t step_in_epoch = 0;  // of the next step: updates done in `epoch`

  std::map<std::string, double>
      totals;  // the loop's other values: "loss", "seconds", "evaluated", "started", ...

  double best_value = std::numeric_limits<double>::quiet_NaN();
  int64_t best_step = -1;  // -1: not yet evaluated
  int64_t evaluations_without_improvement = 0;

  std::string options;              // config.toml
  std::vector<std::string> labels;  // empty: none
  std::string data_sha256;
  std::string model_sha256;
  std::string version;    // of the program that wrote it
  std::string code_path;  // rank 0's instructions: "CPU, AVX2, bf16"
  // The loss's name if versions of this program compute it differently (train/resume.h), or empty.
  std::string loss;
};

// The last step whose evaluation is part of the state; -1: none.
int64_t evaluated_step(const CheckpointState& state);

// Arenas of a ParameterTable in host memory. Reading skips the null ones, for example to read only
// the best model's weights.
struct CheckpointArenas {
  float* weights = nullptr;
  float* m = nullptr;
  float* v = nullptr;
};

// Error(model) if the disk is too small (checked and reserved first) or fails. Then no file is left
// behind, and other checkpoints stay as they were. Everything written is read back and compared
// before the file gets its seal and its name.
void write_checkpoint(const std::filesystem::path& path, const CheckpointState& state,
                      const ParameterTable& table, const CheckpointArenas& arenas);
void write_checkpoint(const std::filesystem::path& path, const CheckpointState& state,
                      ModelTensors& tensors);

// These functions verify the seal first (sealed_file.h). Error(model): the file is damaged, is not
// a checkpoint, or is of another model (a tensor is missing or has another shape; the arenas may
// then be partly overwritten). `verified`: newest_valid_checkpoint() has just verified the seal, so
// it is not verified again.
CheckpointState read_checkpoint_state(const std::filesystem::path& path);
CheckpointState read_checkpoint(const std::filesystem::path& path, const ParameterTable& table,
                                const CheckpointArenas& arenas, bool verified = false);
CheckpointState read_checkpoint(const std::filesystem::path& path, ModelTensors& tensors,
                                bool verified = false);

// A tensor as `inspect` lists it: name ("weights/bert...") and shape.
struct CheckpointTensor {
  std::string name;
  std::vector<int64_t> shape;
};
std::vector<CheckpointTensor> checkpoint_tensors(const std::filesystem::path& path);

}  // namespace finetune

// One checkpoint: everything that a run needs to continue bit for bit. An HDF5 file behind a seal
// (sealed_file.h: any flipped or missing byte is detected), written whole or not at all.
//
//   /weights/<HF name>, /m/<HF name>, /v/<HF name>   float32, contiguous, the parameter's shape
//   /options      the run's config.toml, one text      /labels   the label map, in order of id
//   attributes of /: step, epoch, ...                  attributes of /totals: sums of the loop
//
// Tensors are stored by name, so another layout of the arenas, or another number of processes, can
// read them, and so can a run whose processes have parts of the model (engine/model_tensors.h).
// Equal content gives equal bytes. Memory: tensors stream between the file and the arenas.
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

// When the run began: seconds since 1970, in CheckpointState::totals.
inline constexpr const char* kStartedTotal = "started";

struct CheckpointState {
  int64_t step = 0;           // updates done
  int64_t epoch = 0;          // of the next step, counted from 0
  int64_t step_in_epoch = 0;  // of the next step: updates done in `epoch`

  std::map<std::string, double>
      totals;  // what else the loop keeps: "loss", "seconds", "evaluated", "started", ...

  double best_value = std::numeric_limits<double>::quiet_NaN();
  int64_t best_step = -1;  // -1: not yet evaluated
  int64_t evaluations_without_improvement = 0;

  std::string options;              // config.toml
  std::vector<std::string> labels;  // empty: none
  std::string data_sha256;
  std::string model_sha256;
  std::string version;    // of the program that wrote it
  std::string code_path;  // the instructions that computed, "CPU, AVX2, bf16"; by rank 0
  // Names the loss where versions of this program differ in it (train/resume.h); else empty.
  std::string loss;
};

// The last step whose evaluation is part of the state; -1: none.
int64_t evaluated_step(const CheckpointState& state);

// Arenas of a ParameterTable in host memory. When reading, those that are null are left out (the
// best model's weights alone).
struct CheckpointArenas {
  float* weights = nullptr;
  float* m = nullptr;
  float* v = nullptr;
};

// Error(model) if the disk is too small (checked before, and reserved) or fails: then nothing is
// left behind and other checkpoints are as they were. What has been written is read back and
// compared, all of it, before the file gets its seal and its name.
void write_checkpoint(const std::filesystem::path& path, const CheckpointState& state,
                      const ParameterTable& table, const CheckpointArenas& arenas);
void write_checkpoint(const std::filesystem::path& path, const CheckpointState& state,
                      ModelTensors& tensors);

// All verify the seal first (sealed_file.h). Error(model) for a file that is damaged, no
// checkpoint, or of another model (a tensor missing or of another shape; the arenas may then be
// partly overwritten). `verified`: the seal has just been verified (newest_valid_checkpoint), once
// is enough.
CheckpointState read_checkpoint_state(const std::filesystem::path& path);
CheckpointState read_checkpoint(const std::filesystem::path& path, const ParameterTable& table,
                                const CheckpointArenas& arenas, bool verified = false);
CheckpointState read_checkpoint(const std::filesystem::path& path, ModelTensors& tensors,
                                bool verified = false);

// What `inspect` prints: names ("weights/bert...") and shapes.
struct CheckpointTensor {
  std::string name;
  std::vector<int64_t> shape;
};
std::vector<CheckpointTensor> checkpoint_tensors(const std::filesystem::path& path);

}  // namespace finetune

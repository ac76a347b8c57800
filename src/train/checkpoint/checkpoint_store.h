// The checkpoints of a run: step-00000100.h5 and so on in one directory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "train/checkpoint/checkpoint.h"

namespace finetune {

struct CheckpointFile {
  int64_t step = 0;
  std::filesystem::path path;
};

// directory/step-00000100.h5
std::filesystem::path checkpoint_path(const std::filesystem::path& directory, int64_t step);

// Sorted by step; empty if the directory does not exist. Files with other names are ignored.
std::vector<CheckpointFile> find_checkpoints(const std::filesystem::path& directory);

// The newest checkpoint that is whole, with its state. Each newer file that is refused is logged
// with the reason. Returns nothing if no checkpoint is whole.
struct FoundCheckpoint {
  CheckpointFile file;
  CheckpointState state;
};
std::optional<FoundCheckpoint> newest_valid_checkpoint(const std::filesystem::path& directory);

// Call after checkpoint `current` was written. Keeps the `keep` newest up to `current` (at least
// `current` itself) and the one of `best_step`, and removes the rest. Files of later steps, which
// the run refused when it was resumed, and temporary files of killed writers are removed too.
void prune_checkpoints(const std::filesystem::path& directory, int64_t current, int64_t keep,
                       int64_t best_step);

}  // namespace finetune

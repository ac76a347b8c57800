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

// Sorted by step; empty if there is no such directory. Files of other names are passed over.
std::vector<CheckpointFile> find_checkpoints(const std::filesystem::path& directory);

// The state of the newest checkpoint that is whole, and which file it is; each newer one that is
// refused is named in the log with the reason. Nothing if there is no whole one.
struct FoundCheckpoint {
  CheckpointFile file;
  CheckpointState state;
};
std::optional<FoundCheckpoint> newest_valid_checkpoint(const std::filesystem::path& directory);

// After checkpoint `current` was written: removes all but the `keep` newest up to `current` (at
// least it alone stays) and the one of `best_step`. Files of later steps are leftovers that the
// run refused when it was resumed; they go too. Temporary files of killed writers are removed.
void prune_checkpoints(const std::filesystem::path& directory, int64_t current, int64_t keep,
                       int64_t best_step);

}  // namespace finetune

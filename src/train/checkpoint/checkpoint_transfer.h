// Checkpoints of a run on several processes: rank 0 writes and reads the one file.
// What other hosts or devices have goes to and comes from them in bounded pieces, so that no file
// system need be shared.
#pragma once

#include <filesystem>

#include "train/session.h"

namespace finetune {

// Both collective, after which the file, or the arenas, are complete. Of others than rank 0 `path`
// is not read. Errors as write_checkpoint and read_checkpoint.
void save_checkpoint(Session& session, const std::filesystem::path& path);
// With or without moments; `verified` as in read_checkpoint.
void load_checkpoint(Session& session, const std::filesystem::path& path, bool moments,
                     bool verified);

}  // namespace finetune

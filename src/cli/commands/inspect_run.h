// Descriptions of checkpoints and of a run's directory, for inspect.
#pragma once

#include <filesystem>
#include <string>

#include "core/text/json_value.h"

namespace finetune {

// Returns a value of these descriptions as text. Control characters from files are escaped.
std::string shown(const JsonValue& value);

// Whether the file begins as a checkpoint does; it may be damaged.
bool looks_like_checkpoint(const std::filesystem::path& path);

// Error(model) if it is damaged.
JsonObject describe_checkpoint(const std::filesystem::path& path);
void print_checkpoint(const JsonValue& checkpoint, bool tensors);

// Describes options, facts, final metrics and checkpoints: the newest valid checkpoint in full, and
// the step and name of the others.
JsonObject describe_run(const std::filesystem::path& directory);
void print_run(const JsonValue& run);

}  // namespace finetune

// Descriptions of checkpoints and of a run's directory, for inspect.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace finetune {

// Returns a value of these descriptions as text. Control characters from files are escaped.
std::string shown(const nlohmann::ordered_json& value);

// Whether the file begins as a checkpoint does; it may be damaged.
bool looks_like_checkpoint(const std::filesystem::path& path);

// Error(model) if it is damaged.
nlohmann::ordered_json describe_checkpoint(const std::filesystem::path& path);
void print_checkpoint(const nlohmann::ordered_json& checkpoint, bool tensors);

// Describes options, facts, final metrics and checkpoints: the newest valid checkpoint in full, and
// the step and name of the others.
nlohmann::ordered_json describe_run(const std::filesystem::path& directory);
void print_run(const nlohmann::ordered_json& run);

}  // namespace finetune

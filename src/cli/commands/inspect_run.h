// What inspect says of checkpoints and of a run's directory.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace finetune {

// A value of what follows as text for a terminal: of what files hold nothing but what can be shown.
std::string shown(const nlohmann::ordered_json& value);

// A file that begins with a checkpoint's seal, whole or damaged.
bool looks_like_checkpoint(const std::filesystem::path& path);

// Error(model) if it is damaged.
nlohmann::ordered_json describe_checkpoint(const std::filesystem::path& path);
void print_checkpoint(const nlohmann::ordered_json& checkpoint, bool tensors);

// Options, facts and final metrics, and the checkpoints: the newest whole one in full, of the
// others step and name.
nlohmann::ordered_json describe_run(const std::filesystem::path& directory);
void print_run(const nlohmann::ordered_json& run);

}  // namespace finetune

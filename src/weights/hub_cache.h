// Finds models in the local Hugging Face cache by their hub id. Never uses the network.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.h"

namespace finetune {

// "bert-base-uncased" or "google-bert/bert-base-uncased", optionally followed by "@REVISION".
struct HubName {
  std::string id;
  std::string revision;  // branch, tag or commit; default "main"
};
// Returns nothing if `text` cannot name a repository, or is a file name (*.safetensors and so on).
std::optional<HubName> hub_name(std::string_view text);

// The cache folder, absolute: HF_HUB_CACHE, else HUGGINGFACE_HUB_CACHE, else HF_HOME/hub, else
// XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub.
std::filesystem::path hub_cache();

// Resolves --model: returns `given` if it exists, else the snapshot's directory in the cache if
// there is one, else `given` (use absent_model() for the error). Error(model) if it is impossible
// to tell whether it exists.
std::string model_path(const std::string& given);
// The same, but throws absent_model() if the model does not exist.
std::string existing_model_path(const std::string& given);

// Returns an Error(model) for a missing model. If `given` may be a hub id, it includes the command
// that fetches it.
Error absent_model(const std::filesystem::path& given);

// Returns the model of a snapshot directory; `revision` is its commit.
std::optional<HubName> hub_origin(const std::filesystem::path& directory);
// For a snapshot that lacks files, returns the end of a message with the command that fetches them;
// "" for any other directory.
std::string hub_advice(const std::filesystem::path& directory);

}  // namespace finetune

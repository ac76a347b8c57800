// Models in Hugging Face's cache, by their id on the hub. Nothing here uses the network.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.h"

namespace finetune {

// "bert-base-uncased", "google-bert/bert-base-uncased" or either with "@REVISION" behind it.
struct HubName {
  std::string id;
  std::string revision;  // a branch, a tag or a commit; "main" where none is named
};
// Nothing for what no repository can be called, and for names of files (*.safetensors and so on).
std::optional<HubName> hub_name(std::string_view text);

// The folder of the cache: HF_HUB_CACHE, else HUGGINGFACE_HUB_CACHE, else HF_HOME/hub, else
// XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub. Absolute.
std::filesystem::path hub_cache();

// What --model names: `given` where that exists; else the snapshot's directory in the cache, where
// there is one; else `given`, of which absent_model() then says what is wrong. Error(model) where
// nobody can tell whether it exists.
std::string model_path(const std::string& given);
// The same for what has to be there: throws absent_model().
std::string existing_model_path(const std::string& given);

// Error(model) for a model that is not there. Of what may be an id it has the command that fetches
// it.
Error absent_model(const std::filesystem::path& given);

// The model whose snapshot this directory is, `revision` being its commit.
std::optional<HubName> hub_origin(const std::filesystem::path& directory);
// What to say of a snapshot that lacks files, for the end of a message: the command that fetches
// them. Empty for any other directory.
std::string hub_advice(const std::filesystem::path& directory);

}  // namespace finetune

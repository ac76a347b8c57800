// A model directory in Hugging Face's layout.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace finetune {

struct ModelDirectory {
  std::filesystem::path directory;
  std::filesystem::path config;   // config.json or bert_config.json
  std::filesystem::path weights;  // for open_weights(): the weight file, or the index of shards
};

// `path` is a directory, a run directory (its model/ is used), or a weight file beside its config.
// Error(model) names what is missing and what is accepted. Without `need_weights` only the config
// is required.
ModelDirectory find_model(const std::filesystem::path& path, bool need_weights = true);

// Returns the directory that holds the tokenizer. `given` is a path (of a run: model/ is used), or
// a hub id in the cache. Error(model) if it does not exist.
std::filesystem::path existing_tokenizer_directory(const std::string& given);

// Returns the weights in a directory that open_weights() would read, if any. Error(model) if there
// are several TF1 checkpoints and none is named bert_model.ckpt.
std::optional<std::filesystem::path> find_weights(const std::filesystem::path& directory);
std::optional<std::filesystem::path> find_config(const std::filesystem::path& directory);
// Whether a file of this name belongs to a tokenizer.
bool is_tokenizer_file(std::string_view name);
// Returns the tokenizer files in a directory, in a fixed order.
std::vector<std::filesystem::path> find_tokenizer_files(const std::filesystem::path& directory);

}  // namespace finetune

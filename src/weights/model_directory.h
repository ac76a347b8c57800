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
  std::filesystem::path weights;  // the file that open_weights takes; of shards, their index
};

// `path` is a directory, a run's directory (its model/ is taken), or a weight file beside its
// config. Error(model) that names what is missing and what would do. Without `need_weights` only
// the config is looked for.
ModelDirectory find_model(const std::filesystem::path& path, bool need_weights = true);

// Where the tokenizer of `given` is, a path or an id of the hub's cache: of a run its model/.
// Error(model) if it is not there.
std::filesystem::path existing_tokenizer_directory(const std::string& given);

// The parts of it. The weights that open_weights takes of a directory, if there are any:
// Error(model) if there are several TF1 checkpoints and none is bert_model.ckpt.
std::optional<std::filesystem::path> find_weights(const std::filesystem::path& directory);
std::optional<std::filesystem::path> find_config(const std::filesystem::path& directory);
// The tokenizer's files that are there, by name, in a fixed order.
std::vector<std::filesystem::path> find_tokenizer_files(const std::filesystem::path& directory);

}  // namespace finetune

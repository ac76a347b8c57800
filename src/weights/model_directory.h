// A model directory in Hugging Face's layout.
#pragma once

#include <filesystem>
#include <string>

namespace finetune {

struct ModelDirectory {
  std::filesystem::path directory;
  std::filesystem::path config;   // config.json or bert_config.json
  std::filesystem::path weights;  // the file that open_weights takes; the directory if it is sharded
};

// `path` is a directory, a run's directory (its model/ is taken), or a weight file beside its
// config. Error(model) that names what is missing and what would do. Without `need_weights` only
// the config is looked for.
ModelDirectory find_model(const std::filesystem::path& path, bool need_weights = true);

}  // namespace finetune

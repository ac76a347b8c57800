// Finds config, weights and tokenizer files in a model directory.
#include "weights/model_directory.h"

#include <algorithm>

#include "core/error.h"
#include "core/files/file_kind.h"

namespace finetune {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWeightFiles[] = {"model.safetensors", "model.safetensors.index.json",
                                             "pytorch_model.bin", "tf_model.h5"};
constexpr std::string_view kTokenizerFiles[] = {
    "vocab.txt",         "tokenizer.json", "tokenizer_config.json",   "special_tokens_map.json",
    "added_tokens.json", "spiece.model",   "sentencepiece.bpe.model", "tokenizer.model"};

// A pipe or a device is taken for the file that it stands in for, and refused where it is opened.
bool have_file(const fs::path& path) {
  const FileKind kind = kind_of(path, ExitCode::model);
  return kind != FileKind::absent && kind != FileKind::directory;
}

bool have_directory(const fs::path& path) {
  return directory_exists(path, ExitCode::model);
}

std::optional<fs::path> find_checkpoint(const fs::path& directory) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.ends_with(".index") && name.find("ckpt") != std::string::npos &&
        have_file(it->path())) {
      if (name == "bert_model.ckpt.index") return it->path();
      found.push_back(it->path());
    }
  }
  if (found.empty()) return std::nullopt;
  if (found.size() > 1) {
    std::sort(found.begin(), found.end());
    throw model_error(directory.string(), ": holds several TensorFlow checkpoints (",
                      found[0].filename().string(), ", ", found[1].filename().string(),
                      ", ...): name one of these files");
  }
  return found[0];
}

}  // namespace

std::optional<fs::path> find_weights(const fs::path& directory) {
  for (std::string_view name : kWeightFiles) {
    if (have_file(directory / name)) return directory / name;
  }
  return find_checkpoint(directory);
}

std::optional<fs::path> find_config(const fs::path& directory) {
  for (std::string_view name : {"config.json", "bert_config.json"}) {
    if (have_file(directory / name)) return directory / name;
  }
  return std::nullopt;
}

std::vector<fs::path> find_tokenizer_files(const fs::path& directory) {
  std::vector<fs::path> found;
  for (std::string_view name : kTokenizerFiles) {
    if (have_file(directory / name)) found.push_back(directory / name);
  }
  return found;
}

ModelDirectory find_model(const fs::path& path, bool need_weights) {
  ModelDirectory model;
  if (have_directory(path)) {
    bool is_run = !find_config(path) && have_directory(path / "model");
    model.directory = is_run ? path / "model" : path;
  } else {
    if (path_exists(path, ExitCode::model)) {
      model.weights = path;
    } else if (have_file(fs::path(path) += ".index")) {
      model.weights = fs::path(path) += ".index";
    } else {
      throw model_error(path.string(),
                        ": no such directory or file; a model is a directory with config.json, a "
                        "vocabulary and weights");
    }
    model.directory = path.parent_path().empty() ? fs::path(".") : path.parent_path();
  }
  std::optional<fs::path> config = find_config(model.directory);
  if (!config) {
    if (have_file(model.directory / "config.toml")) {
      throw model_error(model.directory.string(),
                        ": a run that has not come to its end has no model yet; finetune train "
                        "--resume goes on with it");
    }
    throw model_error(model.directory.string(), ": has neither config.json nor bert_config.json");
  }
  model.config = *config;
  if (need_weights && model.weights.empty()) {
    std::optional<fs::path> weights = find_weights(model.directory);
    if (!weights) {
      throw model_error(model.directory.string(),
                        ": has no weights; one of model.safetensors, model.safetensors.index.json, "
                        "pytorch_model.bin, tf_model.h5, bert_model.ckpt.index is needed");
    }
    model.weights = *weights;
  }
  return model;
}

}  // namespace finetune

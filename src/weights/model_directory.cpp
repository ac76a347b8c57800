// Finds config, weights and tokenizer files in a model directory.
#include "weights/model_directory.h"

#include <algorithm>

#include "core/error.h"
#include "core/files/directory_replacement.h"
#include "core/files/file_kind.h"
#include "core/files/files.h"
#include "core/files/text_file.h"
#include "weights/hub_cache.h"
#include "weights/run_collections.h"

namespace finetune {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWeightFiles[] = {"model.safetensors", "model.safetensors.index.json",
                                             "pytorch_model.bin", "pytorch_model.bin.index.json",
                                             "tf_model.h5"};
constexpr std::string_view kTokenizerFiles[] = {"vocab.txt",
                                                "vocab.json",
                                                "merges.txt",
                                                "tokenizer.json",
                                                "tokenizer_config.json",
                                                "special_tokens_map.json",
                                                "added_tokens.json",
                                                "spiece.model",
                                                "spm.model",
                                                "sentencepiece.bpe.model",
                                                "tokenizer.model"};

// Pipes and devices count as files here; opening them reports the error.
bool have_file(const fs::path& path) {
  const FileKind kind = kind_of(path, ExitCode::model);
  return kind != FileKind::absent && kind != FileKind::directory;
}

bool have_directory(const fs::path& path) {
  return directory_exists(path, ExitCode::model);
}

std::optional<fs::path> find_checkpoint(const fs::path& directory) {
  std::vector<fs::path> found;
  for (const fs::path& entry : entries_of(directory)) {
    const std::string name = entry.filename().string();
    if (name.ends_with(".index") && name.find("ckpt") != std::string::npos && have_file(entry)) {
      if (name == "bert_model.ckpt.index") return entry;
      found.push_back(entry);
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

// How to convert a model of another format; "" if the format is not recognised.
std::string advice_on_name(const fs::path& file) {
  const std::string suffix = file.extension().string();
  if (suffix == ".onnx") {
    return ": is an ONNX model, which holds a computation for inference; give the directory "
           "(config.json, model.safetensors) that it was exported from";
  }
  if (suffix == ".gguf") {
    return ": is a GGUF file, whose weights are rounded for inference; give the directory "
           "(config.json, model.safetensors) that it was converted from";
  }
  return "";
}

std::string advice_on_file(const fs::path& file) {
  const bool is_gguf =
      kind_of(file, ExitCode::model) == FileKind::file && read_beginning(file, 4) == "GGUF";
  return advice_on_name(is_gguf ? fs::path("of its content.gguf") : file);
}

std::string advice_on_directory(const fs::path& directory) {
  if (std::string advice = advice_on_collection(directory); !advice.empty()) return advice;
  if (have_file(directory / "adapter_config.json")) {
    return concat(directory.string(),
                  ": is a PEFT adapter, not a whole model; merge it into its base model first (in "
                  "Python: PeftModel.from_pretrained(base, adapter).merge_and_unload()"
                  ".save_pretrained(directory)) and give that directory");
  }
  std::vector<fs::path> found;
  for (const fs::path& inside : {directory, directory / "onnx"}) {
    for (const fs::path& entry : entries_of(inside)) {
      if (!advice_on_name(entry).empty()) found.push_back(entry);
    }
  }
  if (found.empty()) return "";
  const fs::path first = *std::min_element(found.begin(), found.end());
  return first.string() + advice_on_name(first);
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

bool is_tokenizer_file(std::string_view name) {
  return std::find(std::begin(kTokenizerFiles), std::end(kTokenizerFiles), name) !=
         std::end(kTokenizerFiles);
}

std::vector<fs::path> find_tokenizer_files(const fs::path& directory) {
  std::vector<fs::path> found;
  for (std::string_view name : kTokenizerFiles) {
    if (have_file(directory / name)) found.push_back(directory / name);
  }
  return found;
}

namespace {

fs::path of_run_or_itself(const fs::path& path) {
  const bool is_run = !find_config(path) && have_directory(path / "model");
  return is_run ? path / "model" : path;
}

}  // namespace

fs::path existing_tokenizer_directory(const std::string& given) {
  const fs::path path = existing_model_path(given);
  if (!find_tokenizer_files(path).empty()) return path;
  const fs::path directory = of_run_or_itself(path);
  if (find_tokenizer_files(directory).empty() && !find_config(directory)) {
    if (const std::string advice = advice_on_collection(path); !advice.empty()) {
      throw model_error(advice);
    }
  }
  return directory;
}

ModelDirectory find_model(const fs::path& path, bool need_weights) {
  ModelDirectory model;
  if (have_directory(path)) {
    model.directory = of_run_or_itself(path);
  } else {
    if (path_exists(path, ExitCode::model)) {
      const std::string advice = advice_on_file(path);
      if (!advice.empty()) throw model_error(path.string(), advice);
      model.weights = path;
    } else if (have_file(fs::path(path) += ".index")) {
      model.weights = fs::path(path) += ".index";
    } else {
      throw absent_model(path);
    }
    model.directory = parent_of(path);
  }
  std::optional<fs::path> config = find_config(model.directory);
  if (!config) {
    if (have_file(model.directory / "config.toml")) {
      if (have_file(model.directory / "metrics.json")) {
        throw model_error(model.directory.string(),
                          ": the run has ended and its model/ is gone; finetune train --overwrite "
                          "makes it again");
      }
      throw model_error(model.directory.string(),
                        ": this run is unfinished and has no model yet; finetune train "
                        "--resume continues it");
    }
    const std::string advice = advice_on_directory(model.directory);
    if (!advice.empty()) throw model_error(advice);
    throw model_error(model.directory.string(), ": has neither config.json nor bert_config.json",
                      hub_advice(model.directory));
  }
  model.config = *config;
  if (need_weights && model.weights.empty()) {
    std::optional<fs::path> weights = find_weights(model.directory);
    if (!weights) {
      const std::string advice = advice_on_directory(model.directory);
      if (!advice.empty()) throw model_error(advice);
      throw model_error(
          model.directory.string(),
          ": has no weights; put one of model.safetensors, model.safetensors.index.json, "
          "pytorch_model.bin, pytorch_model.bin.index.json, tf_model.h5, bert_model.ckpt.index "
          "there",
          hub_advice(model.directory));
    }
    model.weights = *weights;
  }
  return model;
}

}  // namespace finetune

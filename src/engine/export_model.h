// Exports a model as a directory that transformers loads without a warning.
// Hugging Face's layout: config.json, model.safetensors, the tokenizer's files.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/directory_replacement.h"
#include "core/numeric/dtype.h"
#include "engine/model_tensors.h"
#include "tasks/task.h"

namespace finetune {

// In an exported model: when, and on which data it was trained. Only this file and the card depend
// on the date.
inline constexpr std::string_view kModelFactsFile = "finetune.json";
// The card that people and the Hugging Face hub read, with the same date. One without the marker is
// a user's own and stays.
inline constexpr std::string_view kModelCardFile = "README.md";
inline constexpr std::string_view kCardMarker = "<!-- written by finetune ";

// The text of a model directory's card if a user wrote it; else empty. Error(model).
std::string card_of_user(const std::filesystem::path& directory);

struct ModelExport {
  ModelTensors& tensors;
  std::string source_config;  // the pretrained model's config.json as read
  std::string task_config;    // JSON object (Task::config_json): overrides and joins its keys
  std::vector<ModelFile> files = {};  // the tokenizer's, and the task's own
};

// config.json: all keys of the source are kept, known or not, save the labels of another task;
// architectures, model_type, torch_dtype, label2id and the task's keys are set.
std::string exported_config(const ModelExport& model, DType dtype);

// Writes a directory beside `directory` and exchanges the two: a kill leaves the old or the new
// model whole. Files of others in an old `directory` are kept in the new one. Error(model).
void export_model(const std::filesystem::path& directory, const ModelExport& model,
                  DType dtype = DType::f32);

// Names that an export may write (a run's model/ holds no others of ours).
bool is_exported_name(std::string_view name);

// Returns `config`, the text of a tokenizer_config.json or empty, with token_type_ids in
// model_input_names. A text that has this key, or is not an object, is returned as it is.
std::string with_token_types(const std::string& config);

// `config`, the text of a config.json, with the version of this program as its last key: by that a
// model that finetune has written is known.
std::string with_version(const std::string& config);
// Is that so of its config.json? transformers sorts the keys of what it writes, so that a model
// which it has trained on and saved is not taken for ours. Error(model): it cannot be read.
bool is_exported_model(const std::filesystem::path& directory);

inline constexpr DirectoryKind kExportedModel{"a model that finetune wrote", is_exported_name,
                                              "config.json", is_exported_model};

}  // namespace finetune

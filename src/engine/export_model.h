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

class JsonValue;

// A file of an exported model: when it was trained, and on which data. Only this file and the card
// depend on the date.
inline constexpr std::string_view kModelFactsFile = "finetune.json";
// The model card for people and the Hugging Face hub, with the same date. A card without the marker
// was written by a user and is kept.
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

// Returns config.json: all keys of the source, known or not, except the labels of another task, and
// with architectures, model_type, torch_dtype, label2id and the task's keys set.
std::string exported_config(const ModelExport& model, DType dtype);

// Adds to a config.json the keys that some version of transformers reads in place of those in it.
void add_keys_of_versions(const Architecture& architecture, JsonValue& config);

// Writes a directory beside `directory` and exchanges the two: a kill leaves the old or the new
// model whole. Files that finetune did not write are kept in the new directory. Error(model).
void export_model(const std::filesystem::path& directory, const ModelExport& model,
                  DType dtype = DType::f32);

// Whether an export may write a file of this name. finetune writes no others into a run's model/.
bool is_exported_name(std::string_view name);

// Returns `config`, the text of a tokenizer_config.json or empty, with token_type_ids in
// model_input_names. A text that has this key, or is not an object, is returned as it is.
std::string with_token_types(const std::string& config);

// Returns `config`, the text of a config.json, with the version of this program as its last key,
// which marks a model that finetune has written.
std::string with_version(const std::string& config);
// Whether its config.json ends with that key. transformers sorts the keys when it saves a model, so
// a model that it has trained further does not count. Error(model): the file cannot be read.
bool is_exported_model(const std::filesystem::path& directory);

inline constexpr DirectoryKind kExportedModel{"a model that finetune wrote", is_exported_name,
                                              "config.json", is_exported_model};

}  // namespace finetune

// Writes config.json, model.safetensors and tokenizer files, all at once or not at all.
#include "engine/export_model.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/error.h"
#include "core/files/files.h"
#include "weights/model_directory.h"

namespace finetune {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kVersionKey = "finetune_version";
// The files that an export may have besides the tokenizer's.
constexpr std::array<std::string_view, 6> kNames{"config.json",   "model.safetensors",
                                                 "ngrams.bin",    "drift.json",
                                                 kModelFactsFile, kModelCardFile};

Json parse_object(const std::string& text, std::string_view what) {
  Json json = Json::parse(text.empty() ? "{}" : text, nullptr, false);
  if (!json.is_object()) throw model_error(what, " is not a JSON object");
  return json;
}

const char* torch_name(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return "float16";
    case DType::bf16:
      return "bfloat16";
    default:
      return "float32";
  }
}

Json inverse_of(const Json& id2label) {
  Json label2id = Json::object();
  for (const auto& [id, label] : id2label.items()) {
    auto number = parse_int(id);
    FINETUNE_CHECK(number && label.is_string());
    label2id[label.get<std::string>()] = *number;
  }
  return label2id;
}

}  // namespace

bool is_exported_name(std::string_view name) {
  return is_tokenizer_file(name) || std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

std::string card_of_user(const fs::path& directory) {
  const fs::path card = directory / kModelCardFile;
  if (kind_of(card, ExitCode::model) != FileKind::file) return "";
  std::string text = read_text_file(card, ExitCode::model);
  return text.find(kCardMarker) == std::string::npos ? text : "";
}

std::string exported_config(const ModelExport& model, DType dtype) {
  Json config = parse_object(model.source_config, "the source model's config.json");
  Json task = parse_object(model.task_config, "the task's configuration");
  for (const char* key : {"id2label", "label2id", "num_labels", "_num_labels", "problem_type",
                          "finetune", kVersionKey, "dtype", "torch_dtype", "quantization_config"}) {
    config.erase(key);
  }
  const ParameterTable& table = model.tensors.table();
  const Architecture& architecture = table.architecture();
  config["architectures"] =
      Json::array({concat(architecture.class_prefix, traits_of(table.head().kind).suffix)});
  config["model_type"] = architecture.model_type;
  for (const auto& [old_key, key] : architecture.renamed_keys) {
    if (config.contains(old_key) && !config.contains(key)) config[key] = config[old_key];
  }
  config["torch_dtype"] = torch_name(dtype);
  for (const auto& [key, value] : task.items()) config[key] = value;
  if (config.contains("id2label") && !config.contains("label2id")) {
    config["label2id"] = inverse_of(config["id2label"]);
  }
  return with_version(config.dump());
}

std::string with_token_types(const std::string& config) {
  Json json = config.empty() ? Json::object() : Json::parse(config, nullptr, false);
  if (!json.is_object() || json.contains("model_input_names")) return config;
  json["model_input_names"] = {"input_ids", "token_type_ids", "attention_mask"};
  return json.dump(2) + "\n";
}

std::string with_version(const std::string& config) {
  Json json = parse_object(config, "config.json");
  json.erase(kVersionKey);
  json[kVersionKey] = FINETUNE_VERSION;
  return json.dump(2) + "\n";
}

bool is_exported_model(const fs::path& directory) {
  const fs::path config = directory / kExportedModel.last_file;
  if (!path_exists(config, ExitCode::model)) return false;
  const Json json = Json::parse(read_text_file(config, ExitCode::model), nullptr, false);
  if (!json.is_object() || json.empty()) return false;
  const std::string& last = std::prev(json.end()).key();
  return last == kVersionKey || last == "finetune";  // exports without a version end so
}

void export_model(const fs::path& directory, const ModelExport& model, DType dtype) {
  const fs::path target = without_trailing_separator(directory), parent = target.parent_path();
  if (!parent.empty()) finetune::create_directories(parent);
  uint64_t bytes = uint64_t(model.tensors.table().count()) * size_of(dtype) + (1 << 20);
  for (const ModelFile& file : model.files) bytes += file.bytes.size();
  require_free_space(parent_of(target), bytes, "the model");
  const std::string card = card_of_user(target);
  DirectoryReplacement output(target, kExportedModel);
  output.fill([&] {
    for (const ModelFile& file : model.files) {
      const bool is_kept = file.name == kModelCardFile && !card.empty();
      if (!is_kept) write_file(output.path() / file.name, file.bytes);
    }
    if (!card.empty()) write_file(output.path() / kModelCardFile, card);
    write_file(output.path() / "config.json", exported_config(model, dtype));
    write_weights(output.path() / "model.safetensors", model.tensors, dtype);
  });
  output.commit();
}

}  // namespace finetune

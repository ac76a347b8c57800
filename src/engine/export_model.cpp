// Writes config.json, model.safetensors and tokenizer files, all at once or not at all.
#include "engine/export_model.h"

#include <algorithm>
#include <array>
#include <system_error>

#include "core/error.h"
#include "core/files/files.h"
#include "core/text/json_value.h"
#include "weights/model_directory.h"

namespace finetune {
namespace {

constexpr const char* kVersionKey = "finetune_version";
// The files that an export may have besides the tokenizer's.
constexpr std::array<std::string_view, 6> kNames{"config.json",   "model.safetensors",
                                                 "ngrams.bin",    "drift.json",
                                                 kModelFactsFile, kModelCardFile};

JsonValue parse_object(const std::string& text, std::string_view what) {
  JsonValue json = JsonValue::parse(text.empty() ? "{}" : text);
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

JsonObject inverse_of(const JsonValue& id2label) {
  JsonObject label2id;
  for (const auto& [id, label] : id2label.members()) {
    const auto number = parse_int(id);
    const auto name = label.as<std::string>();
    FINETUNE_CHECK(number && name);
    label2id.set(*name, *number);
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

void add_keys_of_versions(const Architecture& architecture, JsonValue& config) {
  for (const auto& [old_key, key] : architecture.renamed_keys) {
    if (config.contains(old_key) && config[old_key].text() != "null" && !config.contains(key)) {
      config.set(key, config[old_key]);
    }
  }
  if (!architecture.add_keys_of_versions) return;
  architecture.add_keys_of_versions(parse_config(config.text(), "config.json"), config);
}

std::string exported_config(const ModelExport& model, DType dtype) {
  JsonValue config = parse_object(model.source_config, "the source model's config.json");
  const JsonValue task = parse_object(model.task_config, "the task's configuration");
  for (const char* key : {"id2label", "label2id", "num_labels", "_num_labels", "problem_type",
                          "finetune", kVersionKey, "dtype", "torch_dtype", "quantization_config"}) {
    config.erase(key);
  }
  const ParameterTable& table = model.tensors.table();
  const Architecture& architecture = table.architecture();
  config.set("architectures",
             JsonArray{concat(architecture.class_prefix, traits_of(table.head().kind).suffix)});
  config.set("model_type", architecture.model_type);
  add_keys_of_versions(architecture, config);
  config.set("torch_dtype", torch_name(dtype));
  for (const auto& [key, value] : task.members()) config.set(key, value);
  if (config.contains("id2label") && !config.contains("label2id")) {
    config.set("label2id", inverse_of(config["id2label"]));
  }
  return with_version(config.text());
}

std::string with_token_types(const std::string& config) {
  JsonValue json = JsonValue::parse(config.empty() ? "{}" : config);
  if (!json.is_object() || json.contains("model_input_names")) return config;
  json.set("model_input_names", JsonArray{"input_ids", "token_type_ids", "attention_mask"});
  return json.indented(2) + "\n";
}

std::string with_version(const std::string& config) {
  JsonValue json = parse_object(config, "config.json");
  json.erase(kVersionKey);
  json.set(kVersionKey, FINETUNE_VERSION);
  return json.indented(2) + "\n";
}

bool is_exported_model(const fs::path& directory) {
  const fs::path config = directory / kExportedModel.last_file;
  if (!path_exists(config, ExitCode::model)) return false;
  const JsonValue json = JsonValue::parse(read_text_file(config, ExitCode::model));
  if (json.members().empty()) return false;
  const std::string& last = json.members().back().first;
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

#include "train/export_model.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/error.h"
#include "core/files.h"
#include "core/temporary_name.h"
#include "weights/weights.h"

namespace finetune {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 10> kNames{
    "config.json",       "model.safetensors",     "vocab.txt",
    "tokenizer.json",    "tokenizer_config.json", "special_tokens_map.json",
    "added_tokens.json", "spiece.model",          "sentencepiece.bpe.model",
    "tokenizer.model"};

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

std::string reason(int error) {
  return std::strerror(error);
}

// Removes the temporary directory if the export does not come to its end.
class TemporaryModel {
 public:
  explicit TemporaryModel(const fs::path& directory) : path_(temporary_name(directory)) {
    if (::mkdir(path_.c_str(), 0777) != 0) {
      throw model_error(directory.string(), ": cannot be written: ", reason(errno));
    }
  }
  ~TemporaryModel() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

void copy_whole(const fs::path& from, const fs::path& to) {
  MappedFile source(from, ExitCode::model);
  write_file(to, source.text());
}

// Afterwards `directory` is the new model and `temporary` the old one, if there was one.
void exchange(const fs::path& temporary, const fs::path& directory) {
  auto fail = [&](int error) {
    return model_error(directory.string(), ": cannot be written: ", reason(error));
  };
  auto move = [&](const fs::path& from, const fs::path& to) {
    if (::rename(from.c_str(), to.c_str()) != 0) throw fail(errno);
  };
  std::error_code error;
  if (!fs::exists(fs::symlink_status(directory, error))) return move(temporary, directory);
  if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, directory.c_str(), RENAME_EXCHANGE) == 0) {
    return;
  }
  if (errno != EINVAL && errno != ENOSYS) throw fail(errno);
  // A file system that cannot exchange: for a moment there is no model under its name.
  fs::path old = temporary;
  old += ".old";
  move(directory, old);
  move(temporary, directory);
  move(old, temporary);
}

void carry_over(const fs::path& old, const fs::path& directory) {
  std::error_code error;
  for (fs::directory_iterator it(old, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (!is_exported_name(it->path().filename().string())) {
      fs::rename(it->path(), directory / it->path().filename(), ignored);
    }
  }
}

}  // namespace

bool is_exported_name(std::string_view name) {
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

std::string exported_config(const ModelExport& model, DType dtype) {
  Json config = parse_object(model.source_config, "the source model's config.json");
  Json task = parse_object(model.task_config, "the task's configuration");
  for (const char* key : {"id2label", "label2id", "num_labels", "_num_labels", "problem_type",
                          "finetune", "dtype", "torch_dtype", "quantization_config"}) {
    config.erase(key);
  }
  bool sequence = model.table.head().kind == HeadKind::sequence;
  config["architectures"] =
      Json::array({sequence ? "BertForSequenceClassification" : "BertForQuestionAnswering"});
  config["model_type"] = "bert";
  config["torch_dtype"] = torch_name(dtype);
  for (const auto& [key, value] : task.items()) config[key] = value;
  if (config.contains("id2label") && !config.contains("label2id")) {
    config["label2id"] = inverse_of(config["id2label"]);
  }
  return config.dump(2) + "\n";
}

std::vector<WeightView> weight_views(const ParameterTable& table, const float* weights) {
  std::vector<WeightView> views;
  for (const auto& parameter : table.parameters()) {
    views.push_back({parameter.name, parameter.shape, weights + parameter.offset});
  }
  return views;
}

void export_model(const fs::path& directory, const ModelExport& model, DType dtype) {
  fs::path target = directory.has_filename() ? directory : directory.parent_path();
  fs::path parent = target.parent_path();
  if (!parent.empty()) finetune::create_directories(parent);
  require_free_space(parent.empty() ? fs::path(".") : parent,
                     uint64_t(model.table.count()) * size_of(dtype) + (1 << 20), "the model");
  TemporaryModel temporary(target);
  for (const auto& file : model.tokenizer_files) {
    copy_whole(file, temporary.path() / file.filename());
  }
  write_file(temporary.path() / "config.json", exported_config(model, dtype));
  write_safetensors(temporary.path() / "model.safetensors",
                    weight_views(model.table, model.weights), dtype);
  sync_directory(temporary.path());
  exchange(temporary.path(), target);
  sync_directory(parent);
  carry_over(temporary.path(), target);
}

}  // namespace finetune

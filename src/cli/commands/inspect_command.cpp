// finetune inspect: shows what a weight file, a checkpoint, a model or a run's directory holds.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/commands/inspect_run.h"
#include "cli/options/option_binding.h"
#include "core/files/files.h"
#include "core/log.h"
#include "core/text/printable.h"
#include "engine/model_outputs.h"
#include "model/config.h"
#include "tasks/model_files.h"
#include "train/run/run_directory.h"
#include "weights/hub_cache.h"
#include "weights/model_directory.h"
#include "weights/run_collections.h"
#include "weights/weights.h"

namespace finetune {
namespace {

using nlohmann::ordered_json;

constexpr const char* kInspectExamples = R"(Examples:
  finetune inspect model.safetensors
  finetune inspect bert-base-uncased/ --json
  finetune inspect uncased_L-12_H-768_A-12/bert_model.ckpt
  finetune inspect runs/a
  finetune inspect runs/a/checkpoints/step-00000100.h5
)";

int64_t elements_of(const WeightInfo& info) {
  int64_t count = 1;
  for (int64_t dimension : info.shape) count *= dimension;
  return count;
}

ordered_json describe_tensor(const WeightInfo& info) {
  ordered_json tensor;
  tensor["name"] = info.name;
  tensor["stored_name"] = info.stored_name;
  tensor["dtype"] = name_of(info.dtype);
  tensor["shape"] = info.shape;
  return tensor;
}

ordered_json describe_weights(const WeightSource& source) {
  ordered_json result;
  result["path"] = source.path().string();
  result["format"] = source.format();
  if (const std::string remark = source.remark(); !remark.empty()) result["remark"] = remark;
  result["files"] = ordered_json::array();
  for (const fs::path& file : source.files()) {
    result["files"].push_back(
        {{"name", file.filename().string()}, {"bytes", file_bytes(file, ExitCode::model)}});
  }
  int64_t parameters = 0, bytes = 0;
  result["tensors"] = ordered_json::array();
  for (const WeightInfo& info : source.tensors()) {
    result["tensors"].push_back(describe_tensor(info));
    parameters += elements_of(info);
    bytes += elements_of(info) * int64_t(size_of(info.dtype));
  }
  result["ignored"] = ordered_json::array();
  for (const WeightInfo& info : source.ignored()) {
    result["ignored"].push_back(describe_tensor(info));
    result["ignored"].back().erase("name");
  }
  result["parameters"] = parameters;
  result["bytes"] = bytes;
  return result;
}

ordered_json describe_config(const EncoderConfig& config, const fs::path& path) {
  ordered_json result;
  result["path"] = path.string();
  result["model_type"] = config.architecture->model_type;
  const ordered_json stored = ordered_json::parse(config.source_json, nullptr, false);
  if (stored.is_object() && stored.contains("architectures")) {
    result["architectures"] = stored["architectures"];
  }
  result["num_hidden_layers"] = config.num_hidden_layers;
  result["hidden_size"] = config.hidden_size;
  result["num_attention_heads"] = config.num_attention_heads;
  result["intermediate_size"] = config.intermediate_size;
  result["vocab_size"] = config.vocab_size;
  result["max_position_embeddings"] = config.max_position_embeddings;
  result["labels"] = config.labels;
  if (!config.labels_fault.empty()) result["labels_fault"] = config.labels_fault;
  return result;
}

ordered_json describe_model(const fs::path& directory) {
  ordered_json result;
  result["directory"] = directory.string();
  EncoderConfig config;
  const auto path = find_config(directory), weights = find_weights(directory);
  if (path) config = parse_config(read_text_file(*path, ExitCode::model), *path);
  std::unique_ptr<WeightSource> source;
  if (weights) source = open_weights(*weights, config.architecture->names);
  if (source) name_outputs(config, *source);
  if (path) result["config"] = describe_config(config, *path);
  result["tokenizer"] = ordered_json::array();
  for (const fs::path& file : find_tokenizer_files(directory)) {
    result["tokenizer"].push_back(file.filename().string());
  }
  if (const auto ngrams = ngrams_in(directory)) {
    result["ngrams"] = {{"path", ngrams->path.string()},
                        {"ngrams", ngrams->ngrams},
                        {"outputs", ngrams->outputs},
                        {"texts", ngrams->texts}};
  }
  if (source) result["weights"] = describe_weights(*source);
  return result;
}

ordered_json describe(const fs::path& path) {
  ordered_json result;
  if (!directory_exists(path, ExitCode::model)) {
    if (looks_like_checkpoint(path))
      result["checkpoint"] = describe_checkpoint(path);
    else
      result["weights"] = describe_weights(*open_weights(path, default_architecture().names));
    return result;
  }
  if (output_state(path) == OutputState::run) {
    result["run"] = describe_run(path);
    if (directory_exists(path / "model", ExitCode::model)) {
      result.update(describe_model(path / "model"));
    }
    return result;
  }
  result = describe_model(path);
  const bool is_empty = !result.contains("config") && !result.contains("weights");
  if (const std::string advice = is_empty ? advice_on_collection(path) : ""; !advice.empty()) {
    throw model_error(advice);
  }
  if (is_empty && result["tokenizer"].empty()) {
    throw model_error(path.string(),
                      ": holds no run, no config.json, no vocabulary and no weights");
  }
  return result;
}

std::string shape_of(const ordered_json& tensor) {
  std::string text;
  for (const auto& dimension : tensor["shape"]) {
    text += concat(text.empty() ? "" : " x ", dimension.get<int64_t>());
  }
  return text.empty() ? "scalar" : text;
}

// 22713216 -> "22,713,216"
std::string grouped(int64_t number) {
  std::string digits = concat(number);
  for (size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

void print_tensors(const ordered_json& tensors, const char* name_key) {
  std::vector<std::string> names;
  size_t width = 0;
  for (const auto& tensor : tensors) {
    names.push_back(shown(tensor[name_key]));
    width = std::max(width, names.back().size());
  }
  for (size_t i = 0; i < names.size(); ++i) {
    std::printf("  %-*s  %-4s  %s\n", int(width), names[i].c_str(),
                shown(tensors[i]["dtype"]).c_str(), shape_of(tensors[i]).c_str());
  }
}

void print_weights(const ordered_json& weights, bool tensors) {
  std::printf("weights: %s (%s)\n", shown(weights["path"]).c_str(),
              shown(weights["format"]).c_str());
  if (weights.contains("remark")) std::printf("  %s\n", shown(weights["remark"]).c_str());
  if (tensors) print_tensors(weights["tensors"], "name");
  if (tensors && !weights["ignored"].empty()) {
    std::printf("not used in fine-tuning:\n");
    print_tensors(weights["ignored"], "stored_name");
  }
  std::printf("total: %s parameters in %zu tensors, %s bytes\n",
              grouped(weights["parameters"].get<int64_t>()).c_str(), weights["tensors"].size(),
              grouped(weights["bytes"].get<int64_t>()).c_str());
}

void print_config(const ordered_json& config) {
  std::printf("config: %s\n", shown(config["path"]).c_str());
  std::printf("  model_type: %s\n", shown(config["model_type"]).c_str());
  std::string classes;
  if (config.contains("architectures")) {
    for (const auto& name : config["architectures"]) classes += concat(" ", shown(name));
  }
  if (!classes.empty()) std::printf("  architecture:%s\n", classes.c_str());
  for (const auto& [key, value] : config.items()) {
    if (value.is_number()) std::printf("  %s: %s\n", key.c_str(), value.dump().c_str());
  }
  if (config.contains("labels_fault")) {
    std::printf("  labels: %s\n", shown(config["labels_fault"]).c_str());
    return;
  }
  std::printf("  labels: %zu\n", config["labels"].size());
  for (const auto& label : config["labels"]) {
    std::printf("    %s\n", shown(label).c_str());
  }
}

void print_text(const ordered_json& result) {
  if (result.contains("checkpoint")) print_checkpoint(result["checkpoint"], true);
  if (result.contains("run")) print_run(result["run"]);
  if (result.contains("directory")) {
    std::printf("model: %s\n", shown(result["directory"]).c_str());
  }
  if (result.contains("config")) print_config(result["config"]);
  if (result.contains("tokenizer")) {
    std::string names;
    for (const auto& name : result["tokenizer"]) names += concat(" ", shown(name));
    std::printf("tokenizer:%s\n", names.empty() ? " no files" : names.c_str());
  }
  if (result.contains("ngrams")) {
    const ordered_json& found = result["ngrams"];
    std::printf("n-grams to mix with: %s of %s texts\n", grouped(found["ngrams"]).c_str(),
                grouped(found["texts"]).c_str());
  }
  // `inspect RUN/model` lists the tensors of a run's model.
  if (result.contains("weights")) print_weights(result["weights"], !result.contains("run"));
}

struct InspectOptions {
  std::string path;
  bool json = false;
};

const OptionRow<InspectOptions> kInspectRows[] = {
    {{.name = "path",
      .required = commands::all,
      .is_argument = true,
      .help = "weight file, checkpoint, model (directory, or id in the Hugging Face cache) or run",
      .value = "FILE|DIR|ID"},
     &InspectOptions::path},
    {{.name = "json", .help = "one JSON object"}, &InspectOptions::json},
};

}  // namespace

void add_inspect_command(Subcommand program, int&) {
  auto options = std::make_shared<InspectOptions>();
  const Subcommand command = program.add_subcommand(
      "inspect", "Show what a weight file, a checkpoint, a model or a run holds");
  add_options(command, kInspectRows, *options);
  command.footer(kInspectExamples);
  command.callback([options] {
    ordered_json result = describe(existing_model_path(options->path));
    open_console(false);
    if (options->json) {
      const std::string text = result.dump(2, ' ', false, ordered_json::error_handler_t::replace);
      std::printf("%s\n", printable_json(text).c_str());
    } else {
      print_text(result);
    }
  });
}

}  // namespace finetune

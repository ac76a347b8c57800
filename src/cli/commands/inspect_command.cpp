// finetune inspect: shows what a weight file, a checkpoint, a model or a run's directory holds.
#include <algorithm>
#include <memory>

#include "cli/command.h"
#include "cli/commands/inspect_run.h"
#include "cli/options/option_binding.h"
#include "cli/standard_output.h"
#include "core/files/files.h"
#include "core/log.h"
#include "core/text/json_value.h"
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

JsonObject describe_tensor(const WeightInfo& info) {
  return {{"name", info.name},
          {"stored_name", info.stored_name},
          {"dtype", name_of(info.dtype)},
          {"shape", info.shape}};
}

JsonObject describe_weights(const WeightSource& source) {
  JsonObject result = {{"path", source.path().string()}, {"format", source.format()}};
  if (const std::string remark = source.remark(); !remark.empty()) result.add("remark", remark);
  JsonArray files, tensors, ignored;
  for (const fs::path& file : source.files()) {
    files.add(JsonObject{{"name", file.filename().string()},
                         {"bytes", file_bytes(file, ExitCode::model)}});
  }
  int64_t parameters = 0, bytes = 0;
  for (const WeightInfo& info : source.tensors()) {
    tensors.add(describe_tensor(info));
    parameters += elements_of(info);
    bytes += elements_of(info) * int64_t(size_of(info.dtype));
  }
  for (const WeightInfo& info : source.ignored()) {
    JsonObject tensor = describe_tensor(info);
    tensor.erase("name");
    ignored.add(std::move(tensor));
  }
  result.add("files", std::move(files));
  result.add("tensors", std::move(tensors));
  result.add("ignored", std::move(ignored));
  result.add("parameters", parameters);
  result.add("bytes", bytes);
  return result;
}

JsonObject describe_config(const EncoderConfig& config, const fs::path& path) {
  JsonObject result = {{"path", path.string()}, {"model_type", config.architecture->model_type}};
  const JsonValue stored = JsonValue::parse(config.source_json);
  if (stored.contains("architectures")) result.add("architectures", stored["architectures"]);
  result.add("num_hidden_layers", config.num_hidden_layers);
  result.add("hidden_size", config.hidden_size);
  result.add("num_attention_heads", config.num_attention_heads);
  result.add("intermediate_size", config.intermediate_size);
  result.add("vocab_size", config.vocab_size);
  result.add("max_position_embeddings", config.max_position_embeddings);
  result.add("labels", config.labels);
  if (!config.labels_fault.empty()) result.add("labels_fault", config.labels_fault);
  return result;
}

JsonObject describe_model(const fs::path& directory) {
  JsonObject result = {{"directory", directory.string()}};
  EncoderConfig config;
  const auto path = find_config(directory), weights = find_weights(directory);
  if (path) config = parse_config(read_text_file(*path, ExitCode::model), *path);
  std::unique_ptr<WeightSource> source;
  if (weights) source = open_weights(*weights, config.architecture->names);
  if (source) name_outputs(config, *source);
  if (path) result.add("config", describe_config(config, *path));
  JsonArray tokenizer;
  for (const fs::path& file : find_tokenizer_files(directory)) {
    tokenizer.add(file.filename().string());
  }
  result.add("tokenizer", std::move(tokenizer));
  if (const auto ngrams = ngrams_in(directory)) {
    result.add("ngrams", JsonObject{{"path", ngrams->path.string()},
                                    {"ngrams", ngrams->ngrams},
                                    {"outputs", ngrams->outputs},
                                    {"texts", ngrams->texts}});
  }
  if (source) result.add("weights", describe_weights(*source));
  return result;
}

JsonObject describe(const fs::path& path) {
  JsonObject result;
  if (!directory_exists(path, ExitCode::model)) {
    if (looks_like_checkpoint(path))
      result.add("checkpoint", describe_checkpoint(path));
    else
      result.add("weights", describe_weights(*open_weights(path, default_architecture().names)));
    return result;
  }
  if (output_state(path) == OutputState::run) {
    result.add("run", describe_run(path));
    if (directory_exists(path / "model", ExitCode::model)) {
      result.add_all(describe_model(path / "model"));
    }
    return result;
  }
  result = describe_model(path);
  const bool is_empty = !result.contains("config") && !result.contains("weights");
  if (const std::string advice = is_empty ? advice_on_collection(path) : ""; !advice.empty()) {
    throw model_error(advice);
  }
  if (is_empty && result["tokenizer"].items().empty()) {
    throw model_error(path.string(),
                      ": holds no run, no config.json, no vocabulary and no weights");
  }
  return result;
}

std::string shape_of(const JsonValue& tensor) {
  std::string text;
  for (const JsonValue& dimension : tensor["shape"].items()) {
    text += concat(text.empty() ? "" : " x ", dimension.text());
  }
  return text.empty() ? "scalar" : text;
}

// 22713216 -> "22,713,216"
std::string grouped(const JsonValue& number) {
  std::string digits = number.text();
  for (size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

void print_tensors(const JsonValue::Items& tensors, const char* name_key) {
  size_t width = 0;
  for (const JsonValue& tensor : tensors) width = std::max(width, shown(tensor[name_key]).size());
  for (const JsonValue& tensor : tensors) {
    write_standard_output(concat("  ", padded(shown(tensor[name_key]), width), "  ",
                                 padded(shown(tensor["dtype"]), 4), "  ", shape_of(tensor), "\n"));
  }
}

void print_weights(const JsonValue& weights, bool tensors) {
  write_lines(concat("weights: ", shown(weights["path"]), " (", shown(weights["format"]), ")\n"));
  if (weights.contains("remark")) write_lines(concat("  ", shown(weights["remark"]), "\n"));
  if (tensors) print_tensors(weights["tensors"].items(), "name");
  if (tensors && !weights["ignored"].items().empty()) {
    write_lines("not used in fine-tuning:\n");
    print_tensors(weights["ignored"].items(), "stored_name");
  }
  write_lines(concat("total: ", grouped(weights["parameters"]), " parameters in ",
                     weights["tensors"].items().size(), " tensors, ", grouped(weights["bytes"]),
                     " bytes\n"));
}

// "a b", each after a blank.
std::string listed(const JsonValue& names) {
  std::string text;
  for (const JsonValue& name : names.items()) text += concat(" ", shown(name));
  return text;
}

void print_config(const JsonValue& config) {
  write_lines(concat("config: ", shown(config["path"]), "\n"));
  write_lines(concat("  model_type: ", shown(config["model_type"]), "\n"));
  const JsonValue& named = config["architectures"];
  const std::string classes = named.as<std::string>() ? concat(" ", shown(named)) : listed(named);
  if (!classes.empty()) write_lines(concat("  architecture:", classes, "\n"));
  for (const auto& [key, value] : config.members()) {
    if (value.as<double>()) write_lines(concat("  ", key, ": ", value.text(), "\n"));
  }
  if (config.contains("labels_fault")) {
    return write_lines(concat("  labels: ", shown(config["labels_fault"]), "\n"));
  }
  write_lines(concat("  labels: ", config["labels"].items().size(), "\n"));
  for (const JsonValue& label : config["labels"].items()) {
    write_lines(concat("    ", shown(label), "\n"));
  }
}

void print_text(const JsonValue& result) {
  if (result.contains("checkpoint")) print_checkpoint(result["checkpoint"], true);
  if (result.contains("run")) print_run(result["run"]);
  if (result.contains("directory")) {
    write_lines(concat("model: ", shown(result["directory"]), "\n"));
  }
  if (result.contains("config")) print_config(result["config"]);
  if (result.contains("tokenizer")) {
    const std::string names = listed(result["tokenizer"]);
    write_lines(concat("tokenizer:", names.empty() ? " no files" : names, "\n"));
  }
  if (result.contains("ngrams")) {
    const JsonValue& found = result["ngrams"];
    write_lines(concat("n-grams to mix with: ", grouped(found["ngrams"]), " of ",
                       grouped(found["texts"]), " texts\n"));
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
    const JsonObject result = describe(existing_model_path(options->path));
    open_console(false);
    if (options->json) {
      write_standard_output(printable_json(result.indented(2)) + "\n");
    } else {
      print_text(result);
    }
  });
}

}  // namespace finetune

// Describes and prints checkpoints and run directories for inspect.
#include "cli/commands/inspect_run.h"

#include <algorithm>
#include <string_view>

#include "cli/standard_output.h"
#include "core/files/files.h"
#include "core/text/printable.h"
#include "experiments/compare/run_record.h"
#include "tasks/scores/result_lines.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/checkpoint_store.h"
#include "train/options/config_file.h"
#include "train/run/metrics_files.h"

namespace finetune {
namespace {

constexpr size_t kLongestShown = 1000;

using Lines = std::vector<std::pair<std::string, std::string>>;

// "  name   value" lines.
std::string text_of(Lines lines) {
  size_t width = 0;
  for (auto& line : lines) {
    line.first = printable(line.first, kLongestShown);
    width = std::max(width, line.first.size());
  }
  std::string text;
  for (const auto& [name, value] : lines) {
    text += concat("  ", padded(name, width), "  ", value, "\n");
  }
  return text;
}

void print_members(const JsonValue& object) {
  Lines lines;
  for (const auto& [name, value] : object.members()) lines.emplace_back(name, shown(value));
  write_lines(text_of(std::move(lines)));
}

JsonObject options_of(const std::vector<ConfigEntry>& entries) {
  JsonObject options;
  for (const ConfigEntry& entry : entries) {
    if (entry.is_array)
      options.set(entry.name, entry.values);
    else
      options.set(entry.name, entry.values.empty() ? "" : entry.values[0]);
  }
  return options;
}

bool have(const fs::path& path) {
  return path_exists(path, ExitCode::model);
}

}  // namespace

std::string shown(const JsonValue& value) {
  const auto string = value.as<std::string>();
  return printable(string ? *string : value.text(), kLongestShown);
}

bool looks_like_checkpoint(const fs::path& path) {
  constexpr std::string_view kTitle = "finetune checkpoint";
  return read_beginning(path, kTitle.size()) == kTitle;
}

JsonObject describe_checkpoint(const fs::path& path) {
  const CheckpointState state = read_checkpoint_state(path);
  JsonObject out = {{"path", path.string()},
                    {"bytes", file_bytes(path, ExitCode::model)},
                    {"version", state.version},
                    {"code_path", state.code_path},
                    {"step", state.step},
                    {"epoch", state.epoch},
                    {"step_in_epoch", state.step_in_epoch}};
  if (state.best_step >= 0) {
    out.add("best_step", state.best_step);
    out.add("best_value", state.best_value);
  }
  out.add("data_sha256", state.data_sha256);
  out.add("model_sha256", state.model_sha256);
  out.add("labels", state.labels);
  out.add("options", options_of(parse_config_text(state.options, path.string(), ExitCode::model)));
  JsonArray tensors;
  for (const CheckpointTensor& tensor : checkpoint_tensors(path)) {
    tensors.add(JsonObject{{"name", tensor.name}, {"dtype", "f32"}, {"shape", tensor.shape}});
  }
  out.add("tensors", std::move(tensors));
  return out;
}

void print_checkpoint(const JsonValue& checkpoint, bool tensors) {
  write_lines(concat("checkpoint: ", shown(checkpoint["path"]), "\n"));
  JsonObject facts;
  for (const auto& [name, value] : checkpoint.members()) {
    if (!value.is_array() && !value.is_object() && name != "path") facts.add(name, value);
  }
  facts.add("labels", checkpoint["labels"].items().size());
  facts.add("tensors", checkpoint["tensors"].items().size());
  print_members(facts);
  if (!tensors) return;
  write_lines("options:\n");
  print_members(checkpoint["options"]);
  write_lines("tensors:\n");
  Lines shapes;
  for (const JsonValue& tensor : checkpoint["tensors"].items()) {
    std::string shape;
    for (const JsonValue& side : tensor["shape"].items())
      shape += concat(shape.empty() ? "" : " x ", side.text());
    shapes.emplace_back(*tensor["name"].as<std::string>(), shape);
  }
  write_standard_output(text_of(std::move(shapes)));
}

JsonObject describe_run(const fs::path& directory) {
  JsonObject run = {{"directory", directory.string()},
                    {"finished", have(directory / "metrics.json")}};  // written last
  if (have(directory / "config.toml"))
    run.add("options", options_of(read_config(directory / "config.toml", ExitCode::model)));
  if (have(directory / "run.json")) {
    JsonObject facts;
    for (const auto& [name, value] : read_facts(directory / "run.json")) facts.set(name, value);
    if (!facts.members().empty()) run.add("facts", std::move(facts));
  }
  if (have(directory / "metrics.json")) {
    JsonObject metrics;
    for (const auto& [name, value] : read_metrics(directory / "metrics.json", ExitCode::model))
      metrics.add(name, value);
    run.add("metrics", std::move(metrics));
  }
  JsonArray checkpoints;
  for (const CheckpointFile& file : find_checkpoints(directory / "checkpoints")) {
    checkpoints.add(JsonObject{{"step", file.step}, {"name", file.path.filename().string()}});
  }
  run.add("checkpoints", std::move(checkpoints));
  // Skips damaged checkpoints and names them in the log.
  if (auto newest = newest_valid_checkpoint(directory / "checkpoints")) {
    run.add("newest_checkpoint", describe_checkpoint(newest->file.path));
  }
  return run;
}

void print_run(const JsonValue& run) {
  write_lines(concat("run: ", shown(run["directory"]), " (",
                     *run["finished"].as<bool>() ? "finished" : "not finished", ")\n"));
  if (run.contains("metrics")) {
    Metrics metrics;
    for (const auto& [name, value] : run["metrics"].members()) metrics[name] = *value.as<double>();
    for (const std::string& line : result_lines(metrics)) write_lines(concat("  ", line, "\n"));
  }
  if (run.contains("options")) {
    write_lines("options other than the defaults (config.toml has all):\n");
    const fs::path config = fs::path(*run["directory"].as<std::string>()) / "config.toml";
    Lines changed;
    for (const auto& [name, value] : changed_options(config))
      changed.emplace_back(name, printable(value, kLongestShown));
    write_lines(text_of(std::move(changed)));
  }
  if (run.contains("facts")) {
    write_lines("facts:\n");
    print_members(run["facts"]);
  }
  if (run.contains("metrics")) {
    write_lines(concat("metrics: ", run["metrics"].members().size(),
                       " in metrics.json (--json prints them)\n"));
  }
  write_lines(concat("checkpoints: ", run["checkpoints"].items().size(), "\n"));
  for (const JsonValue& file : run["checkpoints"].items()) {
    write_lines(concat("  ", shown(file["name"]), "\n"));
  }
  if (run.contains("newest_checkpoint")) print_checkpoint(run["newest_checkpoint"], false);
}

}  // namespace finetune

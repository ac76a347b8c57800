// Describes and prints checkpoints and run directories for inspect.
#include "cli/commands/inspect_run.h"

#include <algorithm>
#include <cstdio>
#include <string_view>

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

using nlohmann::ordered_json;

constexpr size_t kLongestShown = 1000;

using Lines = std::vector<std::pair<std::string, std::string>>;

// "  name   value" lines.
void print_lines(Lines lines) {
  size_t width = 0;
  for (auto& line : lines) {
    line.first = printable(line.first, kLongestShown);
    width = std::max(width, line.first.size());
  }
  for (const auto& [name, value] : lines) {
    std::printf("  %-*s  %s\n", int(width), name.c_str(), value.c_str());
  }
}

void print_members(const ordered_json& object) {
  Lines lines;
  for (const auto& [name, value] : object.items()) lines.emplace_back(name, shown(value));
  print_lines(std::move(lines));
}

ordered_json options_of(const std::vector<ConfigEntry>& entries) {
  ordered_json options = ordered_json::object();
  for (const ConfigEntry& entry : entries) {
    if (entry.is_array)
      options[entry.name] = entry.values;
    else
      options[entry.name] = entry.values.empty() ? "" : entry.values[0];
  }
  return options;
}

bool have(const fs::path& path) {
  return path_exists(path, ExitCode::model);
}

}  // namespace

std::string shown(const ordered_json& value) {
  const std::string text = value.is_string()
                               ? value.get<std::string>()
                               : value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  return printable(text, kLongestShown);
}

bool looks_like_checkpoint(const fs::path& path) {
  constexpr std::string_view kTitle = "finetune checkpoint";
  return read_beginning(path, kTitle.size()) == kTitle;
}

ordered_json describe_checkpoint(const fs::path& path) {
  const CheckpointState state = read_checkpoint_state(path);
  ordered_json out;
  out["path"] = path.string();
  out["bytes"] = file_bytes(path, ExitCode::model);
  out["version"] = state.version;
  out["code_path"] = state.code_path;
  out["step"] = state.step;
  out["epoch"] = state.epoch;
  out["step_in_epoch"] = state.step_in_epoch;
  if (state.best_step >= 0) {
    out["best_step"] = state.best_step;
    out["best_value"] = state.best_value;
  }
  out["data_sha256"] = state.data_sha256;
  out["model_sha256"] = state.model_sha256;
  out["labels"] = state.labels;
  out["options"] = options_of(parse_config_text(state.options, path.string(), ExitCode::model));
  out["tensors"] = ordered_json::array();
  for (const CheckpointTensor& tensor : checkpoint_tensors(path)) {
    out["tensors"].push_back({{"name", tensor.name}, {"dtype", "f32"}, {"shape", tensor.shape}});
  }
  return out;
}

void print_checkpoint(const ordered_json& checkpoint, bool tensors) {
  std::printf("checkpoint: %s\n", shown(checkpoint["path"]).c_str());
  ordered_json facts = ordered_json::object();
  for (const auto& [name, value] : checkpoint.items()) {
    if (value.is_primitive() && name != "path") facts[name] = value;
  }
  facts["labels"] = checkpoint["labels"].size();
  facts["tensors"] = checkpoint["tensors"].size();
  print_members(facts);
  if (!tensors) return;
  std::printf("options:\n");
  print_members(checkpoint["options"]);
  std::printf("tensors:\n");
  Lines shapes;
  for (const auto& tensor : checkpoint["tensors"]) {
    std::string shape;
    for (const auto& side : tensor["shape"])
      shape += concat(shape.empty() ? "" : " x ", side.get<int64_t>());
    shapes.emplace_back(tensor["name"].get<std::string>(), shape);
  }
  print_lines(std::move(shapes));
}

ordered_json describe_run(const fs::path& directory) {
  ordered_json run;
  run["directory"] = directory.string();
  run["finished"] = have(directory / "metrics.json");  // written last
  if (have(directory / "config.toml"))
    run["options"] = options_of(read_config(directory / "config.toml", ExitCode::model));
  if (have(directory / "run.json")) {
    for (const auto& [name, value] : read_facts(directory / "run.json")) run["facts"][name] = value;
  }
  if (have(directory / "metrics.json"))
    run["metrics"] = read_metrics(directory / "metrics.json", ExitCode::model);
  run["checkpoints"] = ordered_json::array();
  for (const CheckpointFile& file : find_checkpoints(directory / "checkpoints")) {
    run["checkpoints"].push_back({{"step", file.step}, {"name", file.path.filename().string()}});
  }
  // Skips damaged checkpoints and names them in the log.
  if (auto newest = newest_valid_checkpoint(directory / "checkpoints")) {
    run["newest_checkpoint"] = describe_checkpoint(newest->file.path);
  }
  return run;
}

void print_run(const ordered_json& run) {
  std::printf("run: %s (%s)\n", shown(run["directory"]).c_str(),
              run["finished"].get<bool>() ? "finished" : "not finished");
  if (run.contains("metrics")) {
    for (const std::string& line : result_lines(run["metrics"].get<Metrics>())) {
      std::printf("  %s\n", line.c_str());
    }
  }
  if (run.contains("options")) {
    std::printf("options other than the defaults (config.toml has all):\n");
    const fs::path config = fs::path(run["directory"].get<std::string>()) / "config.toml";
    Lines changed;
    for (const auto& [name, value] : changed_options(config))
      changed.emplace_back(name, printable(value, kLongestShown));
    print_lines(std::move(changed));
  }
  if (run.contains("facts")) {
    std::printf("facts:\n");
    print_members(run["facts"]);
  }
  if (run.contains("metrics")) {
    std::printf("metrics: %zu in metrics.json (--json prints them)\n", run["metrics"].size());
  }
  std::printf("checkpoints: %zu\n", run["checkpoints"].size());
  for (const auto& file : run["checkpoints"]) std::printf("  %s\n", shown(file["name"]).c_str());
  if (run.contains("newest_checkpoint")) print_checkpoint(run["newest_checkpoint"], false);
}

}  // namespace finetune

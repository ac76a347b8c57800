// Adds the options of a config file, or of the run that --resume continues, to the command line.
#include "cli/options/config_options.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "comm/agreement.h"
#include "core/error.h"
#include "core/files/text_file.h"
#include "core/text/text.h"
#include "distributed/rank0_values.h"
#include "train/options/config_file.h"
#include "train/options/option_values.h"
#include "train/recipe/recipe.h"
#include "train/run/run_directory.h"

namespace finetune {
namespace {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

// Returns the last value of `option` on the command line, or an empty string.
std::string value_given(const Arguments& arguments, std::string_view option) {
  std::string value;
  for (size_t i = 1; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == option && i + 1 < arguments.size()) value = arguments[i + 1];
    if (argument.starts_with(concat(option, "="))) value = argument.substr(option.size() + 1);
  }
  return value;
}

bool is_given(const Arguments& arguments, std::string_view option) {
  return std::any_of(arguments.begin(), arguments.end(), [&](const std::string& argument) {
    return argument == option || argument.starts_with(concat(option, "="));
  });
}

struct ConfigSource {
  std::string file;
  bool is_of_output = false;
  std::string text;
};

std::optional<ConfigSource> source_of(const Arguments& arguments, Communicator& comm) {
  ConfigSource source;
  source.file = value_given(arguments, "--config");
  if (!source.file.empty()) {
    source.text = read_text_input(source.file, ExitCode::usage);
    return source;
  }
  const char* data = arguments[0] == "adapt" ? "--text" : "--train";
  const std::string output = value_given(arguments, "--output");
  if (output.empty() || !is_given(arguments, "--resume")) return std::nullopt;
  if (is_given(arguments, "--help") || is_given(arguments, "-h")) return std::nullopt;
  if (is_given(arguments, "--model") && is_given(arguments, data)) return std::nullopt;
  source.file = (fs::path(output) / "config.toml").string();
  source.is_of_output = true;
  agree_on_errors(comm, [&] {
    if (comm.rank() != 0) return;
    if (output_state(output) != OutputState::run) {
      throw usage_error("--resume: ", output, " holds no run to take options from; give --model ",
                        "and ", data, " to begin one");
    }
    source.text = read_text_input(source.file, ExitCode::model);
  });
  source.text = broadcast_from_rank0(comm, source.text);
  return source;
}

void check_entries(const std::vector<ConfigEntry>& entries, const std::string& file) {
  check_config_names(entries, all_option_names(), file);
  const std::vector<std::string> lists = list_option_names();
  for (const ConfigEntry& entry : entries) {
    const bool one_value = std::find(lists.begin(), lists.end(), entry.name) == lists.end();
    if (one_value && entry.is_array) {
      throw usage_error(file, ":", entry.line, ": ", entry.name, " takes one value, not an array");
    }
  }
}

std::vector<ConfigEntry> entries_of(const ConfigSource& source) {
  const ExitCode code = source.is_of_output ? ExitCode::model : ExitCode::usage;
  std::vector<ConfigEntry> entries = parse_config_text(source.text, source.file, code);
  try {
    check_entries(entries, source.file);
  } catch (const Error& error) {
    if (!source.is_of_output) throw;
    throw model_error(error.what());
  }
  if (is_config_of_run(source.text)) add_values_of_before(entries);
  return entries;
}

// Whether a recipe decides the option. The file's value counts only with the file's recipe.
bool is_of_recipe(std::string_view name) {
  bool is = false;
  TrainOptions options;
  for_each_recipe_option(options, [&](std::string_view own, auto&) { is = is || own == name; });
  return is;
}

// Returns the layout options that do not change the result: --resume may give other values.
std::vector<std::string> free_layout_options() {
  std::vector<std::string> names;
  for (const TrainOption& option : train_options()) {
    const OptionInfo& info = option.info;
    if (info.group == kLayoutGroup && info.role == OptionRole::run) names.emplace_back(info.name);
  }
  return names;
}

bool layout_fits(const std::vector<ConfigEntry>& entries, const Arguments& arguments, int world) {
  int64_t processes = 1;
  for (const char* name : {"pp", "tp"}) {
    const std::string given = value_given(arguments, concat("--", name));
    const auto value = parse_int(given.empty() ? first_value(entries, name) : given);
    if (!value || *value < 1) continue;
    if (*value > world) return false;
    processes *= *value;
  }
  return world % processes == 0;
}

// Paths in a file of --config are relative to the directory in which its run began. Error(usage) if
// that directory seems to be one above the file, and not the current one.
void require_paths(const ConfigEntry& entry, const std::string& file) {
  constexpr std::string_view kPaths[] = {"model", "train", "eval", "text", "baseline"};
  if (std::find(std::begin(kPaths), std::end(kPaths), entry.name) == std::end(kPaths)) return;
  for (const std::string& value : entry.values) {
    std::error_code ignored;
    const fs::path path = value;
    if (value.empty() || path.is_absolute() || fs::exists(path, ignored)) continue;
    fs::path above = fs::absolute(file, ignored).lexically_normal().parent_path();
    while (above != above.root_path() && !fs::exists(above / path, ignored)) {
      above = above.parent_path();
    }
    if (!fs::exists(above / path, ignored)) continue;
    throw usage_error(file, ":", entry.line, ": ", entry.name, " ", in_quotes(value),
                      ": is relative to the directory that the command is started in; start it in ",
                      above.string(), ", or give --", entry.name, " ", (above / path).string());
  }
}

// If two options exclude each other, giving one of them drops the other of the file.
bool is_excluded(const std::string& name, const Arguments& arguments) {
  constexpr std::pair<std::string_view, std::string_view> exclusive[] = {
      {"eval", "eval-fraction"}, {"eval", "eval-group"}, {"micro-batches", "micro-batch-tokens"}};
  return std::any_of(std::begin(exclusive), std::end(exclusive), [&](const auto& two) {
    return (name == two.first || name == two.second) &&
           (is_given(arguments, concat("--", two.first)) ||
            is_given(arguments, concat("--", two.second)));
  });
}

}  // namespace

std::vector<std::string> with_config_file(std::vector<std::string> arguments, Communicator& comm) {
  if (arguments.empty()) return arguments;
  const bool adapts = arguments[0] == "adapt";
  if (!adapts && arguments[0] != "train" && arguments[0] != "plan") return arguments;
  const std::optional<ConfigSource> source = source_of(arguments, comm);
  if (!source) return arguments;
  const std::vector<ConfigEntry> entries = entries_of(*source);
  const std::string recipe = value_given(arguments, "--recipe");
  const std::string filed_recipe = first_value(entries, "recipe");
  const bool is_other_recipe = !recipe.empty() && !filed_recipe.empty() && recipe != filed_recipe;
  const bool is_of_run = is_config_of_run(source->text);
  std::vector<std::string> left_out;
  if (source->is_of_output && !layout_fits(entries, arguments, comm.size())) {
    left_out = free_layout_options();
  }
  if (is_of_run && filed_recipe == kQuickWord) left_out.emplace_back("batch-size");  // its rows
  if (is_of_run && !source->is_of_output) {  // what the run chose is chosen anew
    const bool had_budget = !first_value(entries, "time-budget").empty();
    const bool has_budget = is_given(arguments, "--time-budget");
    if (had_budget && (has_budget || is_other_recipe)) left_out.emplace_back("max-steps");
    if (is_other_recipe) left_out.emplace_back("head-init");
  }
  Arguments all = arguments;
  for (const ConfigEntry& entry : entries) {
    if (is_other_recipe && is_of_recipe(entry.name)) continue;
    if (std::find(left_out.begin(), left_out.end(), entry.name) != left_out.end()) continue;
    const std::string name = adapts && entry.name == "train" ? "text" : entry.name;
    if (is_given(arguments, concat("--", name)) || is_excluded(name, arguments)) continue;
    if (!source->is_of_output) require_paths(entry, source->file);
    for (const std::string& value : entry.values) all.push_back(concat("--", name, "=", value));
  }
  return all;
}

}  // namespace finetune

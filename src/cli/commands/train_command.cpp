// finetune train: options from the command line and config.toml, then the training run.
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>
#include <utility>

#include "cli/command.h"
#include "cli/option_binding.h"
#include "cli/world.h"
#include "core/error.h"
#include "core/log.h"
#include "train/options/config_file.h"
#include "train/options/option_values.h"
#include "train/recipe/recipe.h"
#include "train/trainer.h"

namespace finetune {
namespace {

constexpr const char* kTrainExamples =
    "Examples:\n"
    "  finetune train --model minilm --train train.csv --eval dev.csv --label-column category \\\n"
    "      --output runs/a\n"
    "  finetune train --task qa --model minilm --train train-v1.1.json --eval dev-v1.1.json \\\n"
    "      --batch-size 16 --lr 3e-5 --epochs 2 --output runs/b\n"
    "  finetune train --config runs/a/config.toml --seed 43 --output runs/c\n"
    "  finetune train ... --output runs/a --resume          continue after a stop or a kill\n"
    "  mpirun -n 4 finetune train ... --pp 2                two replicas of two pipeline stages\n"
    "  finetune train ... --assert \"eval_accuracy>=0.9\"     exit 7 if it is worse\n"
    "\n"
    "--offload-activations N is a horizon: what a layer's backward pass needs comes back from the\n"
    "host N layers before it (without a number 4). A larger N hides slower copies, and keeps N + "
    "1\n"
    "inputs of layers on the GPU; a smaller one saves memory until the GPU waits for copies.";

// Whether the command line has a --recipe and it is not the file's: then the values that a recipe
// decides on are no longer the file's.
bool names_other_recipe(const std::vector<std::string>& arguments,
                        const std::vector<ConfigEntry>& entries) {
  constexpr std::string_view kOption = "--recipe";
  std::string named, filed;
  for (size_t i = 1; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == kOption && i + 1 < arguments.size()) named = arguments[i + 1];
    if (argument.rfind(concat(kOption, "="), 0) == 0) named = argument.substr(kOption.size() + 1);
  }
  for (const ConfigEntry& entry : entries) {
    if (entry.name == "recipe" && !entry.values.empty()) filed = entry.values[0];
  }
  return !named.empty() && !filed.empty() && named != filed;
}

bool is_of_recipe(std::string_view name) {
  bool is = false;
  TrainOptions options;
  for_each_recipe_option(options, [&](std::string_view own, auto&) { is = is || own == name; });
  return is;
}

}  // namespace

void run_training_command(const TrainOptions& options, int& exit_code) {
  TrainOutcome outcome = run_training(options, world());
  exit_code = int(outcome.code);
  for (std::string_view line : split(outcome.gate_table, '\n')) {
    if (!line.empty()) log_to_file(line);
  }
  close_log_file();
  std::fputs(options.json ? outcome.result_line.c_str() : outcome.summary.c_str(), stdout);
  std::fputs(outcome.gate_table.c_str(), options.json ? stderr : stdout);
}

// A config file's values stand in for options that the command line does not give.
std::vector<std::string> with_config_file(std::vector<std::string> arguments) {
  if (arguments.empty()) return arguments;
  const bool adapts = arguments[0] == "adapt";
  if (!adapts && arguments[0] != "train" && arguments[0] != "plan") return arguments;
  std::string file;
  auto given = [&](const std::string& name) {
    return std::any_of(arguments.begin(), arguments.end(), [&](const std::string& argument) {
      return argument == "--" + name || argument.rfind("--" + name + "=", 0) == 0;
    });
  };
  for (size_t i = 1; i < arguments.size(); ++i) {
    if (arguments[i] == "--config" && i + 1 < arguments.size()) file = arguments[i + 1];
    if (arguments[i].rfind("--config=", 0) == 0) file = arguments[i].substr(9);
  }
  if (file.empty()) return arguments;
  std::vector<ConfigEntry> entries = read_config(file);
  check_config_names(entries, all_option_names(), file);
  std::vector<std::string> lists = list_option_names();
  for (const ConfigEntry& entry : entries) {
    bool one_value = std::find(lists.begin(), lists.end(), entry.name) == lists.end();
    if (one_value && entry.is_array) {
      throw usage_error(file, ":", entry.line, ": ", entry.name, " takes one value, not an array");
    }
  }
  // Of two that exclude each other naming one drops the file's other.
  const std::pair<std::string, std::string> exclusive[] = {
      {"eval", "eval-fraction"}, {"eval", "eval-group"}, {"micro-batches", "micro-batch-tokens"}};
  auto is_dropped = [&](const std::string& name) {
    return std::any_of(std::begin(exclusive), std::end(exclusive), [&](const auto& two) {
      return (name == two.first || name == two.second) && (given(two.first) || given(two.second));
    });
  };
  const bool is_other_recipe = names_other_recipe(arguments, entries);
  for (const ConfigEntry& entry : entries) {
    if (is_other_recipe && is_of_recipe(entry.name)) continue;
    const std::string name = adapts && entry.name == "train" ? "text" : entry.name;
    if (given(name) || is_dropped(name)) continue;
    for (const std::string& value : entry.values) {
      arguments.push_back(concat("--", name, "=", value));
    }
  }
  return arguments;
}

void add_train_command(Subcommand program, int& exit_code) {
  const Subcommand command =
      program.add_subcommand("train", "Fine-tune a pretrained BERT on your data");
  auto options = std::make_shared<TrainOptions>();
  auto config = std::make_shared<std::string>();
  OptionBinder bind(command);
  for_each_option(*options, bind);
  command.add_option("--config", *config, "TOML file with the same names; the command line wins")
      .type_name("FILE")
      .group("Data");
  command.footer(kTrainExamples);
  command.callback([options, config, &exit_code] { run_training_command(*options, exit_code); });
}

}  // namespace finetune

// train's options: valid ones survive config.toml and the transfer between processes.
#include "cli/options/option_binding.h"
#include "core/error.h"
#include "fuzz/targets/run/command_line.h"
#include "train/options/option_transfer.h"
#include "train/options/option_values.h"
#include "train/options/option_words.h"
#include "train/options/options.h"

namespace finetune::fuzz {
namespace {

TrainOptions options_of(const std::vector<ConfigEntry>& entries) {
  TrainOptions options;
  for (const ConfigEntry& entry : entries) {
    if (entry.values.empty()) continue;
    const std::string fault = set_option(options, entry.name, entry.values);
    require(fault.empty(), in_quotes(entry.name), " is written, but: ", fault);
  }
  return options;
}

void check_train_options(std::string_view input) {
  Parser parser("finetune", "", "0");
  TrainOptions options;
  const Subcommand command = parser.root().add_subcommand("train", "");
  add_options(command, train_options(), options, {.command = commands::train});
  std::vector<std::string> words = words_of(input);
  words.insert(words.begin(), "train");
  parser.check_names(words);
  if (parser.parse(words)) return;
  validate(options);
  const std::string config = write_config(config_items(options), "");
  const TrainOptions again = options_of(parse_config_text(config, "config.toml"));
  require(write_config(config_items(again), "") == config, "options come back changed: ", config);
  require(write_config(config_items(options_from_text(options_to_text(options))), "") == config,
          "options are not the same on another process");
}

const Registration kTrainOptionsTarget({.name = "train_options", .run = check_train_options});

}  // namespace
}  // namespace finetune::fuzz

// finetune train: its options, then the training run.
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "cli/command.h"
#include "cli/options/option_binding.h"
#include "cli/world.h"
#include "core/files/path_advice.h"
#include "core/log.h"
#include "core/terminal_line.h"
#include "core/text/text.h"
#include "train/options/table/option_table.h"
#include "train/trainer.h"

namespace finetune {
namespace {

constexpr const char* kTrainExamples =
    "Examples:\n"
    "  finetune train --model minilm --train train.csv --eval dev.csv \\\n"
    "      --label-column category --output runs/a\n"
    "  finetune train --task qa --model minilm --train train-v1.1.json \\\n"
    "      --eval dev-v1.1.json --batch-size 16 --lr 3e-5 --epochs 2 --output runs/b\n"
    "  finetune train --config runs/a/config.toml --seed 43 --output runs/c\n"
    "  finetune train --output runs/a --resume           continue after a stop\n"
    "\n"
    "Further examples:\n"
    "  mpirun -n 4 finetune train ... --pp 2             two replicas of two stages\n"
    "  finetune train ... --assert \"eval_accuracy>=0.9\"  exit 7 if it is worse\n"
    "\n"
    "--offload-activations N: what a layer's backward pass needs is back from the host N layers\n"
    "ahead of it (4 if N is left out). A larger N hides slower copies, but keeps N + 1 inputs of\n"
    "layers on the GPU; a smaller one saves memory, until the GPU waits for copies.";

constexpr OptionInfo kConfig{.name = "config",
                             .group = "Data",
                             .common = commands::all,
                             .help = "TOML file with the same names; the command line wins",
                             .value = "FILE"};

}  // namespace

void run_training_command(const TrainOptions& options, int& exit_code) {
  require_directory_name("--output", options.output);
  TrainOutcome outcome = run_training(options, world());
  exit_code = int(outcome.code);
  for (std::string_view line : split(outcome.gate_table, '\n')) {
    if (!line.empty()) log_to_file(line);
  }
  close_log_file();
  const std::string summary = prose_for(STDOUT_FILENO, outcome.summary);
  std::fputs(options.json ? outcome.result_line.c_str() : summary.c_str(), stdout);
  std::fputs(outcome.gate_table.c_str(), options.json ? stderr : stdout);
}

void add_train_command(Subcommand program, int& exit_code) {
  const Subcommand command =
      program.add_subcommand("train", "Fine-tune a pretrained BERT on your data");
  auto options = std::make_shared<TrainOptions>();
  auto config = std::make_shared<std::string>();
  add_options(command, train_options(), *options, {.command = commands::train});
  add_option(command, kConfig, config.get(), {});
  command.footer(kTrainExamples);
  command.callback([options, config, &exit_code] { run_training_command(*options, exit_code); });
}

}  // namespace finetune

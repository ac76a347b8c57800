// finetune adapt: continues pretraining with masked words, on texts without labels.
#include <memory>

#include "cli/command.h"
#include "cli/options/option_binding.h"
#include "core/error.h"
#include "tasks/registry.h"
#include "train/options/options.h"
#include "train/options/table/option_table.h"

namespace finetune {
namespace {

constexpr const char* kAdaptExamples =
    "Hides words of your texts and trains the model to guess them, as transformers' run_mlm does.\n"
    "The head for this is taken from the weights if they have one, else it is new. train takes\n"
    "model/ in --output as its --model; AutoModelForMaskedLM of transformers loads it.\n"
    "\n"
    "A .txt file has one text per line. In CSV, TSV and JSON Lines --text-column names the column\n"
    "if it is neither \"text\" nor the only one. Rows without a text are left out.\n"
    "\n"
    "--reinit starts with random weights, so that a small model can be pretrained from nothing.\n"
    "\n"
    "Examples:\n"
    "  finetune adapt --model minilm --text texts.txt --output runs/bank\n"
    "  finetune adapt --model minilm --text 2024.csv.gz 2025.csv.gz --distinct \\\n"
    "      --text-column description --eval-fraction 0.02 --output runs/bank\n"
    "  finetune adapt --output runs/bank --resume           continue after a stop\n"
    "  finetune train --model runs/bank/model --train labelled.csv --output runs/a";

void run(const TrainOptions& options, int& exit_code) {
  if (options.model.empty())
    throw usage_error("--model is required: a model directory, or an id in the Hugging Face cache");
  if (options.train.empty()) throw usage_error("--text is required: one or more files of texts");
  if (options.task != name_of(TaskKind::mlm)) {
    throw usage_error("--task ", options.task,
                      ": adapt is for texts without labels; finetune train "
                      "takes this one");
  }
  require_options_of(TaskKind::mlm, options);
  run_training_command(options, exit_code);
}

constexpr OptionInfo kConfig{.name = "config",
                             .group = "Data",
                             .common = commands::all,
                             .help = "config.toml of another run; the command line wins",
                             .value = "FILE"};

}  // namespace

void add_adapt_command(Subcommand program, int& exit_code) {
  const Subcommand command =
      program.add_subcommand("adapt", "Continue pretraining on texts without labels");
  auto options = std::make_shared<TrainOptions>();
  auto config = std::make_shared<std::string>();
  options->task = name_of(TaskKind::mlm);
  add_options(command, train_options(), *options,
              {.command = commands::adapt, .task = TaskKind::mlm, .hides_others = true});
  add_option(command, kConfig, config.get(), {});
  command.footer(kAdaptExamples);
  command.callback([options, config, &exit_code] { run(*options, exit_code); });
}

}  // namespace finetune

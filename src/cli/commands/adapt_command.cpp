// finetune adapt: pretraining goes on by masked words, on texts without labels.
#include <memory>
#include <string_view>
#include <utility>

#include "cli/command.h"
#include "cli/options/option_binding.h"
#include "core/error.h"

namespace finetune {
namespace {

constexpr const char* kAdaptExamples =
    "Hides words of your texts and trains the model to guess them, as transformers' run_mlm does.\n"
    "The head for this is taken from the weights if they have one, else it is new. train takes\n"
    "model/ in --output as its --model; transformers loads it as a BertForMaskedLM.\n"
    "\n"
    "A .txt file has one text per line. In CSV, TSV and JSON Lines --text-column names the column\n"
    "if it is neither \"text\" nor the only one. Rows without a text are left out.\n"
    "\n"
    "Examples:\n"
    "  finetune adapt --model minilm --text texts.txt --output runs/bank\n"
    "  finetune adapt --model minilm --text 2024.csv.gz 2025.csv.gz --text-column description \\\n"
    "      --eval-fraction 0.02 --distinct --epochs 1 --output runs/bank\n"
    "  finetune adapt --output runs/bank --resume           continue after a stop or a kill\n"
    "  finetune train --model runs/bank/model --train labelled.csv --output runs/a";

// What is of no use to masked words. It is read all the same, since config.toml has it.
bool is_hidden(const OptionInfo& info) {
  for (std::string_view name :
       {"task", "freeze", "pp", "placement", "pipeline-schedule", "chunks", "stages",
        "offload-activations", "device", "no-deterministic", "bucket-mb", "comm-precision"}) {
    if (info.name == name) return true;
  }
  return is_foreign_option(info.name, TaskKind::mlm);
}

// Where train's words are about other tasks, too.
constexpr std::pair<std::string_view, const char*> kHelp[] = {
    {"eval", "files of texts to evaluate on"},
    {"max-length", "longest text in tokens (default: 128)"},
    {"max-train-samples", "use the first N training texts"},
    {"max-eval-samples", "use the first N evaluation texts"},
    {"recipe", "hf and auto have the same values here: Hugging Face's"},
    {"epochs", "passes over the training data (default: 3)"},
    {"batch-size", "texts per update, over all processes (default: 32)"},
    {"lr", "learning rate (default: 5e-5)"},
    {"micro-batch-tokens", "most tokens at once in training (auto: by the model's size)"},
    {"micro-batches",
     "instead of --micro-batch-tokens: M micro-batches of about equal tokens per virtual shard"},
    {"virtual-shards",
     "sum gradients as K processes would, on any number of them (default: the processes; --tp: "
     "replicas)"},
};

class AdaptBinder {
 public:
  explicit AdaptBinder(Subcommand command) : bind_(command, TaskKind::mlm) {}

  template <typename Value>
  void operator()(OptionInfo info, Value& value) {
    if (info.name == "train") {
      info.name = "text";
      info.help = "required: files of texts, one text per line, or CSV, TSV, JSON Lines";
    }
    for (const auto& [name, help] : kHelp) {
      if (info.name == name) info.help = help;
    }
    if (is_hidden(info)) info.group = "";
    bind_(info, value);
  }

 private:
  OptionBinder bind_;
};

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

}  // namespace

void add_adapt_command(Subcommand program, int& exit_code) {
  const Subcommand command =
      program.add_subcommand("adapt", "Continue pretraining on texts without labels");
  auto options = std::make_shared<TrainOptions>();
  auto config = std::make_shared<std::string>();
  options->task = name_of(TaskKind::mlm);
  AdaptBinder bind(command);
  for_each_option(*options, bind);
  command.add_option("--config", *config, "config.toml of another run; the command line wins")
      .type_name("FILE")
      .group("Data");
  command.footer(kAdaptExamples);
  command.callback([options, config, &exit_code] { run(*options, exit_code); });
}

}  // namespace finetune

// Every answer to another program's option name must name existing options.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>

#include "cli/command.h"
#include "cli/completion/command_table.h"
#include "cli/grid_line.h"
#include "contains.h"
#include "core/text/text.h"
#include "train/options/foreign/foreign_names.h"
#include "train/options/table/option_table.h"

using namespace finetune;
using namespace finetune::test;

namespace {

std::vector<CommandEntry> program_commands() {
  static int exit_code = 0;
  Parser parser("finetune", "", "1");
  add_commands(parser.root(), exit_code);
  return all_commands(describe(parser.root()));
}

const CommandEntry* find(const std::vector<CommandEntry>& all, std::string_view name) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const CommandEntry& c) { return c.name == name; });
  return found == all.end() ? nullptr : &*found;
}

bool has_option(const CommandEntry& command, std::string_view option) {
  return std::any_of(command.options.begin(), command.options.end(),
                     [&](const OptionEntry& o) { return o.name == option; });
}

// The options that an answer names, each of the command named last.
std::vector<std::string> wrong_options(const std::vector<CommandEntry>& all,
                                       const CommandEntry& command, const std::string& answer) {
  std::vector<std::string> wrong;
  const CommandEntry* at = &command;
  for (std::string_view word : split(answer, ' ')) {
    while (!word.empty() && std::string_view("(),;:").find(word.back()) != std::string_view::npos)
      word.remove_suffix(1);
    while (!word.empty() && word.front() == '(') word.remove_prefix(1);
    if (const CommandEntry* named = find(all, word)) at = named;
    if (word.starts_with("--") && word != "--version" && !has_option(*at, word)) {
      wrong.push_back(concat(command.name, ": ", answer));
    }
  }
  return wrong;
}

// Of the table and of the options' rows.
std::vector<std::string_view> all_names() {
  std::vector<std::string_view> all;
  for (const ForeignName& row : foreign_option_names()) all.push_back(row.names);
  for (const TrainOption& option : train_options()) all.push_back(option.info.aliases);
  return all;
}

std::string hint(std::string_view command, std::string_view name, std::string_view value = "") {
  static const std::vector<CommandEntry> all = program_commands();
  const CommandEntry* entry = find(all, command);
  REQUIRE(entry);
  return foreign_option_hint(
             command, name, value,
             [&](std::string_view own) { return has_option(*entry, concat("--", own)); })
      .value_or("");
}

}  // namespace

TEST_CASE("every answer names options that its command has") {
  const auto all = program_commands();
  REQUIRE(all.size() > 17);
  size_t answers = 0;
  for (const CommandEntry& command : all) {
    auto has = [&](std::string_view own) { return has_option(command, concat("--", own)); };
    for (std::string_view names : all_names()) {
      for (std::string_view name : split(names, ' ')) {
        const size_t equals = name.find('=');
        const std::string_view value =
            equals == std::string_view::npos ? "" : name.substr(equals + 1);
        const auto answer = foreign_option_hint(command.name, name.substr(0, equals), value, has);
        if (!answer) continue;
        ++answers;
        const std::string own_words = answer->substr(answer->find(' ') + 1);
        CHECK(join(wrong_options(all, command, own_words), "\n") == "");
      }
    }
  }
  CHECK(answers > 2000);
}

TEST_CASE("rows of the table that can never answer do not exist") {
  const auto all = program_commands();
  for (const ForeignName& row : foreign_option_names()) {
    CAPTURE(row.names);
    const bool for_some = std::any_of(all.begin(), all.end(), [&](const CommandEntry& command) {
      return row.own.empty() || row.own == "version" || has_option(command, concat("--", row.own));
    });
    CHECK(for_some);
    if (row.commands.empty()) continue;
    for (std::string_view name : split(row.commands, ' ')) {
      CAPTURE(name);
      const CommandEntry* command = find(all, name);
      REQUIRE(command);
      CHECK((row.own.empty() || has_option(*command, concat("--", row.own))));
    }
  }
  for (const ForeignName& row : foreign_command_names()) {
    CAPTURE(row.names);
    CHECK((row.own.empty() || find(all, row.own)));
    for (std::string_view name : split(row.names, ' ')) CHECK_FALSE(find(all, name));
  }
}

TEST_CASE("an alias belongs to one option, and is not the name of another") {
  std::map<std::string, std::string_view> owners;
  for (const TrainOption& option : train_options())
    owners[folded_name(option.info.name)] = option.info.name;
  const size_t names = owners.size();
  for (const TrainOption& option : train_options()) {
    if (option.info.aliases.empty()) continue;
    for (std::string_view alias : split(option.info.aliases, ' ')) {
      CAPTURE(alias);
      const auto owner = owners.emplace(folded_name(alias), option.info.name).first;
      CHECK(owner->second == option.info.name);
    }
  }
  CHECK(owners.size() > names + 250);
}

TEST_CASE("names of Trainer, simpletransformers, fastText, spaCy and others") {
  CHECK(hint("train", "per_device_train_batch_size") ==
        "--per_device_train_batch_size is --batch-size here");
  CHECK(hint("train", "label") == "--label is --label-column here");
  CHECK(hint("train", "text") == "--text is --text-column here");
  CHECK(hint("train", "batch") == "--batch is --batch-size here");
  CHECK(hint("train", "steps") == "--steps is --max-steps here");
  CHECK(hint("train", "cpu") == "--cpu is --device cpu here");
  CHECK(hint("train", "gpu") == "--gpu is --device cuda here");
  CHECK(hint("train", "o") == "-o is --output here");
  for (const char* name : {"eval-size", "test_size", "val-split", "validation_split"}) {
    CHECK(contains(hint("train", name), "is --eval-fraction here"));
  }
  CHECK(hint("train", "validation") == "--validation is --eval here");
  CHECK(hint("train", "patience") == "--patience is --early-stopping here");
  CHECK(hint("train", "paths.train").empty());  // the command line itself finds --train
  CHECK(contains(hint("train", "training.max_epochs"), "is --epochs here"));
  CHECK(contains(hint("train", "wordNgrams"), "is not an option here"));
  CHECK(contains(hint("train", "trainBatchSize"), "is --batch-size here"));
  CHECK(contains(hint("train", "optim"), "AdamW is the only optimizer"));
  CHECK(contains(hint("train", "lora"), "is not available: there is no LoRA here; all weights"));
  CHECK(contains(hint("train", "report_to", "wandb"), "metrics.jsonl"));
  CHECK(contains(hint("train", "report_to"), "metrics.jsonl"));
  CHECK(hint("train", "report_to", "tensorboard") == "--report_to is --tensorboard here");
  CHECK(hint("convert", "half") == "--half is --dtype f16 here");
  CHECK(hint("predict", "half") == "--half is --precision bf16 here");
  CHECK(hint("predict", "threshold") == "--threshold is --min-probability here");
  CHECK(contains(hint("predict", "format"), "is --json-lines (of --input: --input-format) here"));
  // The file option, whose name differs between commands.
  CHECK(hint("train", "data") == "--data is --train here");
  CHECK(hint("check", "input") == "--input is --train here");
  CHECK(hint("adapt", "train") == "--train is --text here");
  CHECK(hint("evaluate", "input") == "--input is --data here");
  CHECK(hint("evaluate", "eval") == "--eval is --data here");
  CHECK(hint("predict", "data") == "--data is --input here");
  CHECK(hint("score", "input") == "--input is --data here");
  CHECK(contains(hint("tokenize", "input"), "finetune tokenize --model MODEL FILE"));
}

TEST_CASE("names of google-research/bert, DeepLearningExamples, scikit-learn and SetFit") {
  CHECK(hint("train", "init_checkpoint") == "--init_checkpoint is --model here");
  CHECK(hint("predict", "init-checkpoint") == "--init_checkpoint is --model here");
  CHECK(
      contains(hint("train", "max_query_length"), "--max-length is that of question and context"));
  CHECK(contains(hint("train", "bert_config_file"), "the directory of --model has config.json"));
  CHECK(hint("train", "predict_file") == "--predict_file is --eval here");
  CHECK(hint("evaluate", "train_file") ==
        "--train_file is not needed here: finetune train is what reads it");
  CHECK(hint("bench", "gpu") ==
        "--gpu is an option of what is measured; see finetune bench step --help");
  CHECK(hint("predict", "predict_batch_size") == "--predict_batch_size is --batch-size here");
  CHECK(hint("train", "save_checkpoints_steps") == "--save_checkpoints_steps is --save-every here");
  CHECK(contains(hint("train", "use_tpu"), "is not available"));
  CHECK(contains(hint("train", "json-summary"), "metrics.json"));
  CHECK(hint("train", "skip_checkpoint") == "--skip_checkpoint is --keep-checkpoints 0 here");
  CHECK(hint("train", "log_freq") == "--log_freq is --log-every here");
  CHECK(hint("train", "use_fp16") == "--use_fp16 is --precision bf16 here");
  CHECK(hint("train", "learning_rate_init") == "--learning_rate_init is --lr here");
  CHECK(contains(hint("train", "ngram_range"), "--ngram-mix adds a linear model"));
  CHECK(hint("train", "X_train") == "--x_train is --train here");
  CHECK(hint("score", "y_pred") == "--y_pred is --predictions here");
  CHECK(hint("train", "body_epochs") == "--body_epochs is --epochs here");
  CHECK(contains(hint("train", "column_mapping"), "--text-column and --label-column"));
  CHECK(contains(hint("train", "minCountLabel"), "is not a setting of BERT"));
  // spaCy: the end of a path, or its last two names.
  CHECK(hint("train", "components.transformer.model.name") == "--model_name is --model here");
  CHECK(hint("train", "training.accumulate_gradient")
            .starts_with("--accumulate_gradient is --batch"));
}

TEST_CASE("a letter with two dashes is a variable, with one dash a short option") {
  CHECK(hint("train", "--y") == "--y is --label-column here");
  CHECK(hint("evaluate", "--y") == "--y is --label-column here");
  CHECK(contains(hint("train", "y"), "-y is not needed here"));
  CHECK(hint("train", "--X") == "--X is --text-column here");
  CHECK(contains(hint("train", "--C"), "--C is --weight-decay (more of it holds weights smaller"));
  CHECK(hint("train", "c") == "-c is --config here");
  CHECK(hint("train", "--t") == "--t is --threads here");
  CHECK(hint("predict", "--k") == "--k is --top-k here");
}

TEST_CASE("several values of an option are a line of a sweep's grid") {
  const auto sweep = [](std::string_view name, std::string_view value) {
    return grid_hint("sweep", name, value).value_or("");
  };
  CHECK(sweep("lr", "1,2") ==
        "--lr is not an option of sweep: write lr = [1, 2] under [sweep] in GRID");
  CHECK(contains(sweep("learning_rate", "[1e-5, 3e-5]"), "write lr = [1e-5, 3e-5] under [sweep]"));
  CHECK(contains(sweep("model", "minilm"), "write model = \"minilm\" in GRID, above [sweep]"));
  CHECK(contains(sweep("schedule", "linear,cosine"), "schedule = [\"linear\", \"cosine\"] under"));
  CHECK(contains(sweep("no-shuffle", ""), "write no-shuffle = true in GRID, above [sweep]"));
  CHECK(contains(sweep("param", "epochs=1,2"), "write epochs = [1, 2] under [sweep]"));
  CHECK(contains(sweep("param", "x=1,2"), "write OPTION = [1, 2] under [sweep] in GRID"));
  CHECK(contains(sweep("seeds", "3"), "write seed = [1, 2, 3] under [sweep]"));
  CHECK(contains(sweep("seeds", "4,5"), "write seed = [4, 5] under [sweep]"));
  CHECK(contains(sweep("n_trials", "20"), "write draws = 20 and ranges such as lr = { min"));
  CHECK(sweep("frobnicate", "").empty());
  CHECK(contains(*grid_hint("train", "seeds", "2"),
                 "write seed = [1, 2] under [sweep] in GRID; "
                 "finetune sweep GRID tries them all"));
  CHECK(!grid_hint("predict", "seeds", "2"));
  CHECK(contains(*grid_line_for_values("lr", "1,2"), "lr = [1, 2] under [sweep] in GRID"));
  CHECK(!grid_line_for_values("lr", "fast"));
  CHECK(!grid_line_for_values("text-column", "a,b"));
  CHECK(!grid_line_for_values("multi-label", ",;"));
}

TEST_CASE("commands of other programs") {
  CHECK(foreign_command_hint("export") == "'export' is finetune convert here");
  CHECK(foreign_command_hint("fit") == "'fit' is finetune train here");
  CHECK(foreign_command_hint("finetune") == "'finetune' is finetune train here");
  CHECK(foreign_command_hint("test") == "'test' is finetune evaluate here");
  CHECK(foreign_command_hint("predict-prob") == "'predict-prob' is finetune predict here");
  CHECK(foreign_command_hint("frobnicate") == std::nullopt);
}

// finetune score: official SQuAD scores of a file of predictions.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include "cli/command.h"
#include "cli/options/option_binding.h"
#include "core/error.h"
#include "core/log.h"
#include "core/text/counted.h"
#include "core/text/json_value.h"
#include "data/squad.h"
#include "tasks/scores/prediction_files.h"
#include "tasks/scores/squad_metrics.h"

namespace finetune {
namespace {

struct ScoreOptions {
  std::string data;
  std::string predictions;
  std::string no_answer;
  double no_answer_threshold = 1.0;
  std::string version = "auto";
  bool json = false;
};

const OptionRow<ScoreOptions> kScoreRows[] = {
    {{.name = "data",
      .required = commands::all,
      .help = "SQuAD file with the reference answers",
      .value = "FILE"},
     &ScoreOptions::data},
    {{.name = "predictions",
      .required = commands::all,
      .help = "JSON object: id to answer",
      .value = "FILE"},
     &ScoreOptions::predictions},
    {{.name = "na-prob",
      .help = "JSON object: id to no-answer probability or null odds (version 2)",
      .value = "FILE"},
     &ScoreOptions::no_answer},
    {{.name = "na-prob-threshold",
      .help = "a question whose --na-prob is above this counts as unanswered"},
     &ScoreOptions::no_answer_threshold},
    {{.name = "squad-version",
      .help = "rules of scoring; auto: 2 if the data has unanswerable questions",
      .words = "auto|1|2"},
     &ScoreOptions::version},
    {{.name = "json", .help = "one JSON object on standard output"}, &ScoreOptions::json},
};

void print(const std::map<std::string, double>& metrics, bool as_json) {
  if (as_json) {
    JsonObject out;
    for (const auto& [name, value] : metrics) {
      // Counts are written as whole numbers.
      out.add(name, name.ends_with("_total") ? JsonValue(int64_t(value)) : JsonValue(value));
    }
    std::printf("%s\n", out.text().c_str());
    return;
  }
  size_t width = 0;
  for (const auto& [name, value] : metrics) width = std::max(width, name.size());
  for (const auto& [name, value] : metrics) {
    std::printf("%-*s  %s\n", int(width), name.c_str(), format_number(value).c_str());
  }
}

void score(const ScoreOptions& options) {
  const InputFile file = in_memory(std::filesystem::path(options.data), kSecondsForWriter);
  const SquadData data = read_squad({file}, 0, false);
  if (!data.has_unanswerable &&
      std::all_of(data.questions.begin(), data.questions.end(),
                  [](const SquadQuestion& q) { return q.answers.empty(); })) {
    throw data_error(options.data, ": no question has a reference answer to score against");
  }
  const bool version_2 =
      options.version == "2" || (options.version == "auto" && data.has_unanswerable);
  if (!version_2 && !options.no_answer.empty()) {
    throw usage_error("--na-prob applies to version 2; ", options.data,
                      " has no unanswerable questions (--squad-version 2 scores it so)");
  }
  if (!std::isfinite(options.no_answer_threshold)) {
    throw usage_error("--na-prob-threshold must be a finite number");
  }
  const PredictionFile predictions = read_predictions(options.predictions, data);
  require_answers(predictions, options.predictions);
  SquadPredictions scored;
  scored.answers = predictions.answers;
  scored.no_answer_threshold = options.no_answer_threshold;
  if (!options.no_answer.empty()) {
    scored.no_answer = read_no_answer_scores(options.no_answer, data, predictions);
  }
  const auto metrics = squad_scores(data, scored, version_2 ? 2 : 1);
  open_console(false);
  if (predictions.missing > 0) {
    warn(options.predictions, " has no prediction for ", predictions.missing, " of ",
         counted(data.questions.size(), "question"), predictions.missing == 1 ? "; it " : "; they ",
         version_2 ? concat(predictions.missing == 1 ? "is" : "are",
                            " left out, as in the official script of version 2")
                   : concat(predictions.missing == 1 ? "counts" : "count",
                            " as wrong, as in the official script"));
  }
  if (predictions.unknown > 0) {
    warn(options.predictions, ": ",
         counted(predictions.unknown, "id is not a question", "ids are not questions"), " of ",
         options.data, predictions.unknown == 1 ? " and is ignored" : " and are ignored");
  }
  print(metrics, options.json);
}

}  // namespace

void add_score_command(Subcommand program, int& exit_code) {
  auto options = std::make_shared<ScoreOptions>();
  const Subcommand command =
      program.add_subcommand("score", "Compute the official SQuAD scores of a file of predictions");
  add_options(command, kScoreRows, *options);
  command.footer(
      "Examples:\n"
      "  finetune score --data dev-v1.1.json --predictions runs/b/predictions.json\n"
      "  finetune score --data dev-v2.0.json --predictions answers.json \\\n"
      "      --na-prob null_odds.json --json");
  command.callback([options, &exit_code] {
    score(*options);
    exit_code = 0;
  });
}

}  // namespace finetune

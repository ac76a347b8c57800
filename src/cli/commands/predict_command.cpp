// finetune predict: labels or answers for new data.
#include <unistd.h>

#include <memory>
#include <optional>

#include "cli/command.h"
#include "cli/options/answer_options.h"
#include "cli/options/option_binding.h"
#include "cli/options/promise_options.h"
#include "cli/output/output_file.h"
#include "cli/standard_output.h"
#include "cli/world.h"
#include "core/clock.h"
#include "core/files/files.h"
#include "core/log.h"
#include "core/phase_times.h"
#include "data/input_file.h"
#include "inference/batch_dispatch.h"
#include "inference/logits_cache.h"
#include "tasks/registry.h"
#include "train/options/table/option_table.h"
#include "train/record/progress.h"

namespace finetune {
namespace {

struct PredictOptions : AnswerOptions {
  std::string input, output;
  std::string input_format = "auto";
  std::optional<int64_t> top_k;
  bool all_probabilities = false;
  std::optional<double> min_probability;
  bool automatic = false, explain = false;
  bool json_lines = false;
  bool spreadsheet_safe = false;
  bool stream = false;
  std::string n_best;
};

using PredictRow = OptionRow<PredictOptions>;

const PredictRow kPredictRows[] = {
    {{.name = "input",
      .group = "Data",
      .required = commands::all,
      .common = commands::all,
      .help = "CSV, TSV, JSONL, JSON, a text per line, SQuAD JSON, also as .gz or .zst; - is "
              "standard input",
      .value = "FILE|-"},
     &PredictOptions::input},
    {{.name = "input-format",
      .group = "Data",
      .tasks = kLabels,
      .help = "form of the rows; auto: by suffix and content, standard input by its first line",
      .words = "auto|csv|tsv|jsonl|json|text"},
     &PredictOptions::input_format},
    {{.name = "output",
      .group = "Output",
      .required = commands::all,
      .common = commands::all,
      .help =
          "CSV, or JSON Lines if it ends in .jsonl; for qa JSON {id: answer}; - is standard output",
      .value = "FILE|-"},
     &PredictOptions::output},
    {{.name = "top-k",
      .group = "Output",
      .tasks = kLabels,
      .common = commands::all,
      .help = "the K most probable labels (default: 1)",
      .value = "K",
      .range = at_least(1)},
     &PredictOptions::top_k},
    {{.name = "all-probabilities",
      .group = "Output",
      .tasks = kLabels,
      .common = commands::all,
      .help = "a column for every label"},
     &PredictOptions::all_probabilities},
    {{.name = "min-probability",
      .group = "Output",
      .tasks = kLabels,
      .common = commands::all,
      .help = "less likely labels become 'unsure'; the column best_label still has them",
      .value = "P",
      .range = between(0, 1)},
     &PredictOptions::min_probability},
    {{.name = "automatic",
      .group = "Output",
      .tasks = kLabels,
      .common = commands::all,
      .help = "labels below the probability that evaluate --max-error promised become 'unsure'"},
     &PredictOptions::automatic},
    {{.name = "explain",
      .group = "Output",
      .tasks = kLabels,
      .common = commands::all,
      .help = "columns that say which words made the label"},
     &PredictOptions::explain},
    {{.name = "json-lines",
      .group = "Output",
      .tasks = kLabels,
      .common = commands::all,
      .help = "JSON Lines in place of CSV, as for an --output that ends in .jsonl"},
     &PredictOptions::json_lines},
    {{.name = "spreadsheet-safe",
      .group = "Output",
      .tasks = kLabels,
      .help = "CSV: an apostrophe before values that a spreadsheet would take for formulas"},
     &PredictOptions::spreadsheet_safe},
    {{.name = "stream",
      .group = "Output",
      .tasks = kLabels,
      .help = "answer rows as they come (default: if standard output is a terminal)"},
     &PredictOptions::stream},
    {{.name = "nbest",
      .group = "Output",
      .tasks = kQuestions,
      .help = "write the n-best lists here",
      .value = "FILE"},
     &PredictOptions::n_best},
};

// Shows the progress line and the log, but not if the predictions go to a terminal.
class Progress {
 public:
  Progress(const PredictOptions& options)
      : options_(options), hidden_(options.output == "-" && ::isatty(STDOUT_FILENO) == 1) {}

  // `share`: the part of the input that is done; negative: unknown. Returns whether it was shown.
  bool show(const Evaluator& evaluator, double share) {
    const double seconds = seconds_now() - start_;
    if (hidden_ || seconds < kSecondsWithoutProgress) return false;
    if (!is_open_) {
      enable_progress(!options_.shared.no_progress);
      open_console(options_.shared.quiet);
      is_open_ = true;
    }
    const EvaluatedUnit unit = evaluator.unit();
    show_progress(progress_parts(unit.verb, evaluator.rows(), unit.rows, share, seconds));
    return true;
  }

 private:
  const PredictOptions& options_;
  bool hidden_, is_open_ = false;
  double start_ = seconds_now();
};

PredictionRequest request_of(const PredictOptions& o, const RowOptions& rows) {
  PredictionRequest request;
  request.input = o.input;
  request.output = o.output;
  request.n_best = o.n_best;
  request.top_k = o.top_k;
  request.all_probabilities = o.all_probabilities;
  request.rows = rows;
  request.rows.format = parse_row_format(o.input_format);
  if (o.stream && o.output != "-" && !is_pipe(o.output)) {
    throw usage_error("--stream writes to standard output or a pipe; ", o.output,
                      " is a file, which appears whole");
  }
  // A user who types texts sees each label at once.
  request.stream = o.stream || (o.output == "-" && ::isatty(STDOUT_FILENO) == 1);
  request.json_lines = o.json_lines || ends_with_ignoring_case(o.output, ".jsonl") ||
                       ends_with_ignoring_case(o.output, ".ndjson");
  if (o.spreadsheet_safe && request.json_lines) {
    throw usage_error("--spreadsheet-safe is for CSV; JSON Lines are written");
  }
  request.spreadsheet_safe = o.spreadsheet_safe;
  request.explain = o.explain;
  request.column_option = given_column_option(o);
  return request;
}

void check_paths(const PredictOptions& o) {
  if (o.shared.json && o.output == "-") {
    throw usage_error("--json and --output - both write to standard output; name a file");
  }
  for (const std::string& path : {o.output, o.n_best}) {
    check_output_file(path, {o.input}, o.shared.overwrite);
  }
  if (o.output == o.n_best || is_same_file(o.output, o.n_best)) {
    throw usage_error("--output and --nbest are both ", o.output, "; they need two files");
  }
}

void set_least_probability(const PredictOptions& o, FineTuned& model) {
  model.options.min_probability = o.min_probability;
  if (!o.automatic) return;
  if (o.min_probability) throw usage_error("--automatic and --min-probability exclude each other");
  require_automatic(model.options, model.model.config);
  model.options.min_probability = read_promise(promised_model(model)).threshold;
  model.options.is_automatic = true;
}

void log_outcome(const Evaluator& evaluator, double seconds, int64_t cache_hits) {
  const EvaluatedUnit unit = evaluator.unit();
  const double computing = seconds - evaluator.seconds_waited();
  log(unit.verb, " ", format_rate(evaluator.rows(), unit.rows, computing));
  if (cache_hits > 0) log(describe_cache_hits(cache_hits));
  for (const std::string& line : evaluator.describe_samples()) log(line);
  for (const std::string& line : evaluator.warnings()) warn(line);
}

void run(PredictOptions& o, std::string_view given) {
  Communicator& comm = world();
  FineTuned model;
  std::unique_ptr<Evaluator> evaluator;
  begin_inference(comm, o.inference, given, [&] {
    for (std::string* path : {&o.output, &o.n_best}) *path = link_destination(*path);
    check_paths(o);
    model = open_fine_tuned(o);
    for (const std::string& path : {o.output, o.n_best}) {
      check_model_survives(path, model.model.directory.directory);
    }
    set_least_probability(o, model);
    evaluator =
        traits_of(model.kind)
            .make_predictor(request_of(o, model.options.rows), model.options, model.of_task());
  });
  if (comm.rank() != 0) return serve_inference(o.inference, comm);
  load_fine_tuned(model, o.inference, evaluator->head(), evaluator->max_length(), comm);
  comm.note("evaluation", -1);
  BatchDispatcher dispatcher(*model.engine, *model.stages);
  Progress progress(o);
  const double start = seconds_now();
  evaluator->open_outputs(
      [&](const std::string& path) { return open_output_file(path, o.shared.overwrite); });
  dispatcher.evaluate(*evaluator, model.micro_batch_tokens, [&](double share) {
    if (!progress.show(*evaluator, share)) return true;
    for (const std::string& line : evaluator->early_warnings()) log(line);
    return true;
  });
  evaluator->commit_outputs();
  phase_ended("results written");
  // With --explain most samples are rows without one of their words.
  log_outcome(*evaluator, seconds_now() - start, o.explain ? 0 : dispatcher.cache_hits());
  clear_progress();
  dispatcher.done();
  end_inference(model);
  open_console(o.shared.quiet);
  if (!o.shared.json) return;
  const std::string members = evaluator->report_json();
  write_standard_output(
      concat("{\"rows\":", evaluator->rows(), members.empty() ? "" : ",", members, "}\n"));
}

}  // namespace

void add_predict_command(Subcommand program, int&) {
  const Subcommand command = program.add_subcommand(
      "predict", "Predict labels or answers for new data with a fine-tuned model");
  auto o = std::make_shared<PredictOptions>();
  add_model_option(command, commands::predict, *o);
  add_options(command, kPredictRows, *o);
  add_answer_options(command, commands::predict, *o);
  command.footer(
      "Examples:\n"
      "  finetune predict --model runs/a/model --input new.csv --output labels.csv\n"
      "  echo 'RONA BRACKETS' | finetune predict --model runs/a --input - --output -\n"
      "  finetune predict --model runs/b --input questions.json --output answers.json");
  command.callback([o, command] {
    take_answer_options(command, *o);
    append_given(command, kPredictRows, *o, o->given);
    run(*o, command.given());
  });
}

}  // namespace finetune

// finetune check: problems of rows that are worth knowing before training, and baselines.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "cli/command.h"
#include "cli/options/option_binding.h"
#include "cli/output/output_file.h"
#include "cli/standard_output.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/files/path_advice.h"
#include "core/log.h"
#include "core/text/counted.h"
#include "core/text/json_value.h"
#include "core/text/printable.h"
#include "core/threads/signals_blocked.h"
#include "engine/engine.h"
#include "tasks/data_check.h"
#include "tasks/registry.h"
#include "train/options/options.h"
#include "train/options/table/option_table.h"
#include "train/quick/frozen_baseline.h"
#include "train/record/progress.h"
#include "train/run/run_setup.h"

namespace finetune {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  finetune check --train train.csv --eval dev.csv --label-column category\n"
    "  finetune check --train train.csv --model minilm     also its features' result\n"
    "  finetune check --train train.csv --fail-on error    exit code 7\n"
    "\n"
    "Nothing is trained but linear models, the figures that a fine-tuned model has to beat: on\n"
    "n-grams and, with --model, on the frozen model's features. Findings come most serious first:\n"
    "an error would stop train, a warning spoils or flatters its result. The exit code is 0 all\n"
    "the same, unless --fail-on asks for another.";

struct CheckOptions {
  TrainOptions train;
  std::string fail_on;                    // empty: no finding changes the exit code
  std::string label_errors, out_of_fold;  // files to write; empty: not wanted
  std::optional<int64_t> folds;
};

const OptionRow<CheckOptions> kCheckRows[] = {
    {{.name = "fail-on",
      .group = "Output",
      .common = commands::all,
      .help = "exit with code 7 if a finding is at least this serious",
      .words = "error|warning"},
     &CheckOptions::fail_on},
    {{.name = "label-errors",
      .group = "Output",
      .common = commands::all,
      .help = "write the rows of --train whose label may be wrong, the surest first, as CSV",
      .value = "FILE"},
     &CheckOptions::label_errors},
    {{.name = "out-of-fold",
      .group = "Output",
      .help = "write every row's probabilities by a model that was not trained on it, as CSV",
      .value = "FILE"},
     &CheckOptions::out_of_fold},
    {{.name = "folds",
      .group = "Output",
      .help = "parts that are left out in turn for --label-errors and --out-of-fold (default: 5)",
      .value = "K",
      .range = between(2, 100)},
     &CheckOptions::folds},
};

constexpr const char* kFrozenSeconds = "baseline_frozen_processor_seconds";
constexpr std::string_view kFrozenPrefix = "baseline_frozen_", kQuickPrefix = "baseline_quick_";

const char* word_of(FindingLevel level) {
  return level == FindingLevel::error     ? "error"
         : level == FindingLevel::warning ? "warning"
                                          : "note";
}

const char* name_of_labels(const DataCheck& check) {
  return check.problem == ProblemType::multi_label ? ", any number a row" : "";
}

std::string figure(const Metrics& metrics, const std::string& name, bool is_share) {
  const auto found = metrics.find(name);
  if (found == metrics.end()) return "-";
  if (!std::isfinite(found->second)) return "none";
  return is_share ? concat(format_fixed(100 * found->second, 1), " %")
                  : format_measure(found->second);
}

struct BaselineColumn {
  const char* title;
  std::string_view prefix;
};

// A row for each metric and a column for each baseline; --model adds the model's columns.
std::string baseline_table(const DataCheck& check) {
  constexpr std::string_view kPrefix = "baseline_majority_";
  const bool is_regression = check.problem == ProblemType::regression;
  std::vector<BaselineColumn> columns{{is_regression ? "mean" : "majority", kPrefix},
                                      {"n-grams", "baseline_ngram_"}};
  if (check.baselines.contains(kFrozenSeconds)) columns.push_back({"features", kFrozenPrefix});
  const auto is_quick = [](const auto& metric) { return metric.first.starts_with(kQuickPrefix); };
  if (std::any_of(check.baselines.begin(), check.baselines.end(), is_quick)) {
    columns.push_back({"features and n-grams", kQuickPrefix});
  }
  std::string out = padded("", 16);
  for (const BaselineColumn& column : columns) {
    out += &column == &columns.back() ? concat(column.title, "\n") : padded(column.title, 12);
  }
  for (const auto& [name, value] : check.baselines) {
    if (!name.starts_with(kPrefix)) continue;
    const std::string metric = name.substr(kPrefix.size());
    const bool is_share = !is_regression && metric != "mcc";
    out += padded(metric, 16);
    for (const BaselineColumn& column : columns) {
      const std::string value = figure(check.baselines, concat(column.prefix, metric), is_share);
      out += &column == &columns.back() ? value + "\n" : padded(value, 11) + " ";
    }
  }
  return out;
}

std::string text_of(const DataCheck& check) {
  std::string out = concat("train: ", counted(check.train_rows, "row"));
  if (check.problem != ProblemType::regression) {
    out += concat(", ", counted(check.labels, "label"), name_of_labels(check));
  }
  if (check.eval_rows > 0) out += concat("; eval: ", counted(check.eval_rows, "row"));
  if (check.held_out_rows > 0) {
    out += concat("; the baselines are measured on ", check.held_out_rows,
                  " of them that are held out");
  }
  out += "\n";
  if (!check.baselines.empty()) out += concat("\n", baseline_table(check));
  for (const std::string& line : check.lines) out += line + "\n";
  out += "\n";
  for (const Finding& finding : check.findings) {
    out += concat(word_of(finding.level), ": ", printable_message(finding.text), "\n");
  }
  if (check.findings.empty()) out += "nothing that is worth a warning\n";
  return out;
}

std::string json_of(const DataCheck& check) {
  JsonObject out = {{"train_rows", check.train_rows}};
  if (check.eval_rows > 0) out.add("eval_rows", check.eval_rows);
  if (check.held_out_rows > 0) out.add("held_out_rows", check.held_out_rows);
  if (check.problem != ProblemType::regression) out.add("labels", check.labels);
  for (const auto& [name, value] : check.baselines) out.add(name, value);
  JsonArray findings;
  for (const Finding& finding : check.findings) {
    findings.add(JsonObject{{"level", word_of(finding.level)},
                            {"kind", finding.kind},
                            {"count", finding.count},
                            {"text", finding.text}});
  }
  out.add("findings", findings);
  return printable_json(out.text()) + "\n";
}

TaskOptions checked_options(const TrainOptions& o) {
  if (o.train.empty()) throw usage_error("--train is required: one or more data files");
  validate_values(o);
  if (!o.eval.empty() && o.eval_fraction != 0) {
    throw usage_error("--eval and --eval-fraction exclude each other");
  }
  validate_windows(o);
  validate_eval_group(o);
  if (!o.eval.empty() && !o.eval_group.empty()) {
    throw usage_error("--eval and --eval-group exclude each other");
  }
  if (o.regression && !o.multi_label.empty()) {
    throw usage_error("--regression and --multi-label exclude each other");
  }
  require_encoding(o.encoding);
  const DataFiles files = open_data(o);
  for (const InputFile& file : files.all()) {
    if (const TaskTraits* form = task_of_form(file)) {
      throw usage_error(file.name.string(), ": holds ", form->data,
                        "; check is for classification and regression");
    }
  }
  TaskOptions options = task_options(o);
  options.train_files = files.train;
  options.eval_files = files.eval;
  return options;
}

bool has_as_serious(const DataCheck& check, const std::string& word) {
  const FindingLevel least =
      word == word_of(FindingLevel::error) ? FindingLevel::error : FindingLevel::warning;
  return std::any_of(check.findings.begin(), check.findings.end(),
                     [&](const Finding& finding) { return finding.level <= least; });
}

// Shows the stage and its time once a second, except in the first two seconds. It has a thread of
// its own, because another process trains the n-gram baseline for minutes.
class CheckProgress {
 public:
  explicit CheckProgress(const TrainOptions& o) {
    enable_progress(!o.no_progress);
    const SignalsBlocked blocked;
    thread_ =
        std::jthread([this, quiet = o.quiet](const std::stop_token& stop) { run(stop, quiet); });
  }
  ~CheckProgress() {
    thread_.request_stop();
    thread_.join();
    clear_progress();
  }

  void begin(const char* stage) {
    const std::lock_guard lock(mutex_);
    stage_ = stage;
    since_ = seconds_now();
  }

 private:
  void run(const std::stop_token& stop, bool quiet) {
    constexpr std::chrono::duration<double> kFirst(kSecondsWithoutProgress), kEach(1);
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, stop, kFirst, [] { return false; });
    while (!stop.stop_requested()) {
      open_console(quiet);
      show_progress(concat("checking: ", stage_, "  ", clock_time(seconds_now() - since_)));
      wake_.wait_for(lock, stop, kEach, [] { return false; });
    }
  }

  std::mutex mutex_;
  std::condition_variable_any wake_;
  const char* stage_ = "reading";
  double since_ = seconds_now();
  std::jthread thread_;
};

// The files of --label-errors and --out-of-fold, which appear once the check is done.
class LabelErrorFiles {
 public:
  explicit LabelErrorFiles(const CheckOptions& o) {
    if (is_same_file(o.label_errors, o.out_of_fold)) {
      throw usage_error("--label-errors and --out-of-fold are both ", o.out_of_fold,
                        "; they need two files");
    }
    errors_ = open(o, "--label-errors", o.label_errors);
    probabilities_ = open(o, "--out-of-fold", o.out_of_fold);
    if (!errors_ && !probabilities_ && o.folds) {
      throw usage_error("--folds is for --label-errors and --out-of-fold");
    }
    request_ = {int(o.folds.value_or(request_.folds)), writer_of(errors_.get()),
                writer_of(probabilities_.get())};
  }

  const LabelErrorRequest* request() const {
    return errors_ || probabilities_ ? &request_ : nullptr;
  }
  void commit() {
    for (PredictionOutput* file : {errors_.get(), probabilities_.get()}) {
      if (file) file->complete();
    }
    for (PredictionOutput* file : {errors_.get(), probabilities_.get()}) {
      if (file) file->commit();
    }
  }

 private:
  using File = std::unique_ptr<PredictionOutput>;

  static File open(const CheckOptions& o, const char* option, const std::string& given) {
    if (given.empty()) return nullptr;
    if (given == "-") throw usage_error(option, " needs the name of a file");
    require_output_suffix(option, given, {".csv"}, "rows are written as CSV; name it .csv");
    const std::string path = link_destination(given);
    std::vector<std::string> inputs = o.train.train;
    inputs.insert(inputs.end(), o.train.eval.begin(), o.train.eval.end());
    check_output_file(path, inputs, o.train.overwrite);
    return open_output_file(path, o.train.overwrite);
  }
  static WriteText writer_of(PredictionOutput* file) {
    if (!file) return nullptr;
    return [file](std::string_view text) { file->write(text); };
  }

  File errors_, probabilities_;
  LabelErrorRequest request_;
};

DataCheck check_with_progress(const CheckOptions& o, const TaskOptions& options,
                              const TaskModel* model) {
  LabelErrorFiles files(o);
  CheckProgress progress(o.train);
  DataCheck found = check_data(
      options, model, [&](const char* stage) { progress.begin(stage); }, files.request());
  files.commit();
  return found;
}

// Adds metrics of a linear head on the model's features, for each metric of the majority baseline.
void add_frozen_baseline(const TrainOptions& given, const TaskOptions& options, DataCheck& check) {
  if (check.baselines.empty()) return;
  TrainOptions o = given;
  if (o.eval.empty() && o.eval_fraction == 0) o.eval_fraction = kHeldOutOfCheck;
  FrozenBaseline found;
  try {
    found = measure_frozen_baseline(o, {options.train_files, options.eval_files});
  } catch (const Error& error) {  // the findings are right without it
    check.findings.push_back({FindingLevel::note, "no-frozen-baseline",
                              concat("no baseline of the model's features: ", error.what()),
                              check.train_rows});
    return;
  }
  constexpr std::string_view kMajority = "baseline_majority_";
  Metrics more{{kFrozenSeconds, found.processor_seconds}};
  for (const auto& majority : check.baselines) {
    if (!majority.first.starts_with(kMajority)) continue;
    const std::string metric = majority.first.substr(kMajority.size());
    for (const auto& [prefix, metrics] :
         {std::pair(kFrozenPrefix, &found.alone), {kQuickPrefix, &found.with_ngrams}}) {
      const auto value = metrics->find("eval_" + metric);
      if (value != metrics->end()) more[concat(prefix, metric)] = value->second;
    }
  }
  check.baselines.merge(more);
  check.lines.push_back(
      concat("features: a linear head on the frozen model, as train --recipe quick fits it, in ",
             format_fixed(found.processor_seconds, 1), " s of processor time"));
}

ExitCode check(const CheckOptions& given) {
  const TrainOptions& o = given.train;
  const TaskOptions options = checked_options(o);
  ModelFiles files;
  std::optional<TaskModel> model;
  if (!o.model.empty()) {
    files = open_model(o.model);
    model.emplace(TaskModel{*files.tokenizer, files.config});
  } else if (o.max_length || options.long_texts.in_windows) {
    throw usage_error(o.max_length ? "--max-length" : "--long-text",
                      " needs --model, whose tokens it counts");
  }
  DataCheck result = check_with_progress(given, options, model ? &*model : nullptr);
  open_console(o.quiet);
  if (model) add_frozen_baseline(o, options, result);
  for (const Finding& finding : result.findings) {
    if (finding.level <= FindingLevel::warning) count_warning(finding.text);
  }
  o.json ? write_standard_output(json_of(result)) : write_lines(text_of(result));
  const bool fails = !given.fail_on.empty() && has_as_serious(result, given.fail_on);
  return fails ? ExitCode::assertion : ExitCode::done;
}

}  // namespace

void add_check_command(Subcommand program, int& exit_code) {
  const Subcommand command = program.add_subcommand(
      "check", "Examine data before training: baselines, and what would mislead");
  auto o = std::make_shared<CheckOptions>();
  add_options(command, train_options(), o->train, {.command = commands::check});
  add_options(command, kCheckRows, *o);
  command.footer(kExamples);
  command.callback([o, &exit_code] { exit_code = int(check(*o)); });
}

}  // namespace finetune

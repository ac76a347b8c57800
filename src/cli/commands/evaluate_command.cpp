// finetune evaluate: metrics of a fine-tuned model on data, optionally with its predictions.
#include <algorithm>
#include <cstdio>
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
#include "core/files/output_directory.h"
#include "core/files/path_advice.h"
#include "core/log.h"
#include "core/phase_times.h"
#include "core/terminal_line.h"
#include "engine/export_model.h"
#include "inference/batch_dispatch.h"
#include "inference/logits_cache.h"
#include "tasks/baseline.h"
#include "tasks/registry.h"
#include "tasks/scores/result_lines.h"
#include "train/options/option_values.h"
#include "train/options/table/option_table.h"
#include "train/record/progress.h"
#include "train/record/result_line.h"
#include "train/record/training_rows.h"
#include "train/run/fingerprint.h"
#include "train/run/gates.h"
#include "train/run/junit.h"
#include "train/run/metrics_files.h"
#include "train/run/run_directory.h"
#include "weights/model_directory.h"
#include "weights/weights.h"

namespace finetune {
namespace {

struct EvaluateOptions : AnswerOptions {
  std::vector<std::string> data;
  std::optional<double> min_probability, target_accuracy, max_error, confidence;
  std::vector<std::string> slices, seen_in;
};

const OptionRow<EvaluateOptions> kEvaluateRows[] = {
    {{.name = "data",
      .group = "Data",
      .required = commands::all,
      .common = commands::all,
      .help = "CSV, TSV, JSONL, or SQuAD JSON; several files are joined",
      .value = "FILE..."},
     &EvaluateOptions::data},
    {{.name = "min-probability",
      .group = "Answers",
      .tasks = kLabels,
      .common = commands::all,
      .help = "accuracy and share of the labels that are this sure",
      .value = "P",
      .range = between(0, 1)},
     &EvaluateOptions::min_probability},
    {{.name = "target-accuracy",
      .group = "Answers",
      .tasks = kLabels,
      .common = commands::all,
      .help = "find the least --min-probability with this accuracy",
      .value = "A",
      .range = between(0, 1)},
     &EvaluateOptions::target_accuracy},
    {{.name = "max-error",
      .group = "Answers",
      .tasks = kLabels,
      .common = commands::all,
      .help = "promise that at most this share of labels of predict --automatic is wrong; needs "
              "fresh --data",
      .value = "E",
      .range = above(0, 0.5)},
     &EvaluateOptions::max_error},
    {{.name = "confidence",
      .group = "Answers",
      .tasks = kLabels,
      .common = commands::all,
      .help = "how sure --max-error's promise is (default: 0.95)",
      .value = "C",
      .range = {.least = 0.5, .most = 1, .below_most = true}},
     &EvaluateOptions::confidence},
    {{.name = "slice",
      .group = "Answers",
      .tasks = kLabels,
      .common = commands::all,
      .help = "metrics for each value of this column; seen:NAME: values in --seen-in, and others",
      .value = "NAME"},
     &EvaluateOptions::slices},
    {{.name = "seen-in",
      .group = "Answers",
      .tasks = kLabels,
      .help = "the files of training, for --slice seen:NAME",
      .value = "FILE..."},
     &EvaluateOptions::seen_in},
};

// Returns the given options by name, without options of this one call, and without the layout,
// which changes no result.
std::vector<ConfigItem> options_given(const EvaluateOptions& o) {
  std::vector<ConfigItem> items;
  for (const GivenOption& option : o.given) {
    const OptionInfo& info = *option.info;
    if (info.role == OptionRole::session || info.group == kLayoutGroup || info.name == "output") {
      continue;
    }
    if (auto value = config_value(option.value)) {
      items.push_back({std::string(info.name), std::move(*value)});
    }
  }
  return items;
}

// Refuses to replace files without --overwrite, and always refuses files of a run or the data.
void check_output(const EvaluateOptions& o) {
  if (o.shared.output.empty()) return;
  require_directory_name("--output", o.shared.output);
  const fs::path output = o.shared.output;
  if (output_state(output) == OutputState::run) {
    throw usage_error("--output ", o.shared.output,
                      ": holds a run, whose files would be replaced; ", "choose another directory");
  }
  if (find_config(output)) {
    throw usage_error("--output ", o.shared.output, ": holds a model; choose another directory");
  }
  check_output_directory(output, o.shared.overwrite, kEvaluation);
  check_inputs_survive(output, {o.data.begin(), o.data.end()});
}

// The model to evaluate, without its weights, and the data.
struct Subject {
  FineTuned model;
  std::unique_ptr<Evaluator> evaluator;
  std::vector<Assertion> gates;
  std::optional<TaskOptions> training;  // the rows that it was trained on
  std::string use;                      // what else its run used the data for; may be empty
  std::unique_ptr<Fingerprint> sum;     // of the data, with --json or --output
};

// Returns the rows of training: the files of --train, or of the model's run if they are known.
std::optional<TaskOptions> training_rows(const EvaluateOptions& o, Subject& subject,
                                         const TaskOptions& evaluated) {
  const auto require_columns = traits_of(subject.model.kind).require_columns;
  const bool has_baselines = require_columns != nullptr;
  TrainingRowsOfModel of_run;
  if (o.shared.train.empty()) {
    of_run = training_rows_of(subject.model.model.directory.directory);
    subject.use = use_of_rows(evaluated.eval_files, subject.model, of_run);
  } else {
    of_run.options = evaluated;
    of_run.options->train_files = of_run.options->eval_files = {};
    for (const fs::path file : o.shared.train)
      of_run.options->train_files.push_back(rereadable(file));
    if (has_baselines) require_columns(*of_run.options);
  }
  if (o.max_error) require_fresh_rows(evaluated.eval_files, subject.model, of_run);
  if (!of_run.options) {
    if (has_baselines) {
      log(o.shared.no_ngram_baseline ? "the majority is that of --data: " : "no n-gram baseline: ",
          of_run.why, "; --train names the rows ",
          o.shared.no_ngram_baseline ? "of training" : "to train it on");
    }
    return std::nullopt;
  }
  if (!o.max_error) {
    of_run.options->eval_files.clear();
  } else if (!o.shared.train.empty()) {
    of_run.options->eval_files = files_of_run(subject.model);  // a promise leaves them out
  }
  of_run.options->max_eval_samples = 0;
  of_run.options->baselines = true;
  of_run.options->ngram_baseline = !o.shared.no_ngram_baseline && has_baselines;
  return of_run.options;
}

// Bad rows in files of --train are an error. Files of the model's own run may be unusable although
// their checksums are right; the metrics are correct without them.
void take_training_rows(const EvaluateOptions& o, Subject& subject) {
  if (!subject.training) return;
  try {
    subject.evaluator->take_training_rows(*subject.training);
  } catch (const Error& error) {
    if (!o.shared.train.empty() || error.code() != ExitCode::data) throw;
    warn("the rows that the model was trained on are not known: ", error.what());
    subject.training.reset();
  }
}

void set_answers(const EvaluateOptions& o, TaskOptions& options) {
  if (o.min_probability && o.target_accuracy) {
    throw usage_error("--min-probability and --target-accuracy exclude each other");
  }
  if (o.max_error && (o.min_probability || o.target_accuracy)) {
    throw usage_error("--max-error finds a probability of its own; leave out --",
                      o.min_probability ? "min-probability" : "target-accuracy");
  }
  if (o.confidence && !o.max_error) throw usage_error("--confidence is for --max-error");
  const double confidence = o.confidence.value_or(PromiseRequest().confidence);
  if (o.max_error) options.promise = {*o.max_error, confidence};
  options.min_probability = o.min_probability;
  options.target_accuracy = o.target_accuracy;
  options.slices = o.slices;
  options.seen_files = {o.seen_in.begin(), o.seen_in.end()};
}

std::unique_ptr<Subject> open_subject(const EvaluateOptions& o) {
  check_output(o);
  if (!o.shared.junit.empty())
    check_junit_output(o.shared.junit, o.shared.output, is_evaluation_file);
  auto subject = std::make_unique<Subject>();
  FineTuned& model = subject->model = open_fine_tuned(o);
  check_labelled_survive(o.shared.output, model.model.directory.directory, o.shared.train);
  require_form_of(model.kind, fs::path(o.data[0]), model.options.text_columns);
  TaskOptions options = model.options;
  const bool reads_again = o.shared.json || o.max_error;
  for (const fs::path file : o.data)
    options.eval_files.push_back(reads_again && is_pipe(file) ? rereadable(file) : InputFile(file));
  if (o.shared.json || !o.shared.output.empty())
    subject->sum = std::make_unique<Fingerprint>(options.eval_files);
  // The rules follow the data, as in training: a model of version 2 may be scored on version 1.
  if (!is_given(o, "squad-version")) options.squad_version = 0;
  options.baselines = true;
  subject->training = training_rows(o, *subject, options);
  options.ngram_baseline = subject->training && subject->training->ngram_baseline;
  set_answers(o, options);
  if (options.promise) check_promise_output(model.model.directory.directory, o.shared.overwrite);
  subject->evaluator = traits_of(model.kind).make_evaluator(options, model.of_task());
  take_training_rows(o, *subject);
  std::vector<std::string> names = subject->evaluator->metric_names();
  names.emplace_back("eval_rows");
  const BaselineKinds kinds{.ngrams = subject->training && options.ngram_baseline,
                            .unmixed = options.mix && options.uses_mix};
  for (std::string& name : baseline_metric_names(names, kinds)) {
    names.push_back(std::move(name));
  }
  subject->gates = gates_of(o.shared.assertions, o.shared.baselines, o.shared.tolerances, names);
  return subject;
}

// Returns the seed of the run that trained the model, if that is known.
std::optional<uint64_t> seed_of(const FineTuned& model) {
  const fs::path run = fs::absolute(model.model.directory.directory).parent_path();
  try {
    if (output_state(run) != OutputState::run) return std::nullopt;
    for (const auto& [name, value] : read_facts(run / "run.json")) {
      if (name == "seed") return parse_int(value);
    }
  } catch (const Error&) {  // the seed is optional
  }
  return std::nullopt;
}

RunIdentity identity_of(const EvaluateOptions& o, Subject& subject) {
  FineTuned& model = subject.model;
  return {o.shared.output,
          std::string(name_of(model.kind)),
          options_given(o),
          seed_of(model),
          model.weights_sha256(),
          {{"evaluated", date_text(date_now())}, {"data_sha256", subject.sum->result()}}};
}

// Returns the facts that --output gets: from what it was computed, and when.
NamedFacts facts_of(const EvaluateOptions& o, const Subject& subject) {
  return {{"version", FINETUNE_VERSION},          {"evaluated", date_text(date_now())},
          {"model", o.inference.model},           {"data", join(o.data, ", ")},
          {"data_sha256", subject.sum->result()}, {"eval_rows", concat(subject.evaluator->rows())}};
}

// Called by the process that has the metrics.
ExitCode check_gates(const EvaluateOptions& o, const std::vector<Assertion>& gates,
                     const Metrics& metrics) {
  const AssertionReport report = evaluate_assertions(gates, metrics);
  if (!o.shared.junit.empty()) {
    write_junit(o.shared.junit, junit_xml("evaluate", o.inference.model, report, metrics));
  }
  if (o.shared.json)
    std::fputs(report.table.c_str(), stderr);
  else
    write_standard_output(report.table);
  return report.passed ? ExitCode::done : ExitCode::assertion;
}

Baselines baselines_of(const EvaluateOptions& o, const Subject& subject) {
  try {
    Baselines found = subject.evaluator->baselines();
    found.metrics.erase("baseline_ngram_runtime");  // files are the same each time
    return found;
  } catch (const Error& error) {
    if (o.shared.no_ngram_baseline) throw;
    throw Error(error.code(), concat(error.what(), "; --no-ngram-baseline leaves it out"));
  }
}

void run(const EvaluateOptions& o, std::string_view given, int& exit_code) {
  Communicator& comm = world();
  std::unique_ptr<Subject> subject;
  begin_inference(comm, o.inference, given, [&] { subject = open_subject(o); });
  InferenceOptions inference = o.inference;
  inference.sum_weights = o.shared.json;
  int64_t code = 0;  // one exit code for all processes
  if (comm.rank() != 0) {
    serve_inference(inference, comm);
    comm.broadcast(&code, sizeof code, 0);
    exit_code = int(code);
    return;
  }
  FineTuned& model = subject->model;
  Evaluator* evaluator = subject->evaluator.get();
  load_fine_tuned(model, inference, evaluator->head(), evaluator->max_length(), comm);
  std::optional<DirectoryReplacement> files;
  auto writing = [&](const auto& work) { files ? files->fill(work) : work(); };
  if (!o.shared.output.empty()) {
    files.emplace(o.shared.output, kEvaluation, o.shared.overwrite);
    writing([&] { evaluator->open_outputs(files_in(files->path())); });
  }
  enable_progress(!o.shared.no_progress);
  open_console(o.shared.quiet);
  for (const auto& line : evaluator->describe()) log(line);
  for (const auto& line : model.layout) log(line);
  BatchDispatcher dispatcher(*model.engine, *model.stages);
  const double start = seconds_now();
  int64_t sequences = 0;
  comm.note("evaluation", -1);
  writing([&] {
    sequences = *dispatcher.evaluate(*evaluator, model.micro_batch_tokens, [&](double share) {
      if (share > 0) show_progress(progress_parts("evaluating", share, seconds_now() - start));
      return true;
    });
  });
  dispatcher.done();
  end_inference(model);
  clear_progress();
  log("evaluated ", format_rate(sequences, "sequences", seconds_now() - start));
  if (dispatcher.cache_hits() > 0) log(describe_cache_hits(dispatcher.cache_hits()));
  for (const auto& line : evaluator->describe_samples()) log(line);
  Metrics metrics = evaluator->metrics();
  metrics["eval_rows"] = double(evaluator->rows());
  add_baselines(baselines_of(o, *subject), metrics);
  if (files) {
    writing([&] {
      evaluator->commit_outputs();
      evaluator->write_files(files->path());
      write_facts(files->path() / kEvaluationFacts, facts_of(o, *subject));
      write_metrics(files->path() / "metrics.json", metrics);
    });
    if (files->replaces()) check_replaceable(o.shared.output, kEvaluation);  // it may have changed
    files->commit();
  }
  const std::string report = evaluator->report();
  if (o.shared.json) {
    if (!subject->use.empty()) log(subject->use);
    write_standard_output(result_line(identity_of(o, *subject), metrics, evaluator->report_json()));
    if (!o.shared.quiet) std::fputs(prose_for(::fileno(stderr), report).c_str(), stderr);
  } else {
    for (const std::string& line : result_lines(metrics)) write_lines(line + "\n");
    if (!subject->use.empty()) write_lines(subject->use + "\n");
    const bool keeps_files = !o.shared.output.empty();
    write_lines(concat("all ", metrics.size(), " metrics: ",
                       keeps_files ? concat(o.shared.output, "/metrics.json\n")
                                   : "with --json, or in the files of --output DIR\n"));
    write_lines(report);
  }
  code = int64_t(check_gates(o, subject->gates, metrics));
  code = std::max(code, int64_t(keep_promise(model, evaluator->promise())));
  phase_ended("results written");
  comm.broadcast(&code, sizeof code, 0);
  exit_code = int(code);
}

}  // namespace

void add_evaluate_command(Subcommand program, int& exit_code) {
  const Subcommand command = program.add_subcommand(
      "evaluate", "Measure a fine-tuned model on data with labels or answers");
  auto o = std::make_shared<EvaluateOptions>();
  add_model_option(command, commands::evaluate, *o);
  add_options(command, kEvaluateRows, *o);
  add_answer_options(command, commands::evaluate, *o);
  command.footer(
      "Examples:\n"
      "  finetune evaluate --model runs/a/model --data test.csv\n"
      "  finetune evaluate --model runs/b --data dev-v2.0.json --output runs/b/test\n"
      "  finetune evaluate --model runs/a --data test.csv \\\n"
      "      --assert \"eval_accuracy>=0.9\" --junit gates.xml");
  command.callback([o, command, &exit_code] {
    take_answer_options(command, *o);
    append_given(command, kEvaluateRows, *o, o->given);
    run(*o, command.given(), exit_code);
  });
}

}  // namespace finetune

// Checks the last weights, exports the best model, writes metrics and facts, checks the gates.
#include "train/finish.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "comm/agreement.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/files/files.h"
#include "core/log.h"
#include "core/numeric/tree_sum.h"
#include "core/process_stats.h"
#include "distributed/tensors/held_parts.h"
#include "engine/export_model.h"
#include "engine/pooled_weights.h"
#include "engine/scaled_head.h"
#include "tasks/baseline.h"
#include "tasks/registry.h"
#include "tasks/scores/result_lines.h"
#include "train/checkpoint/checkpoint_store.h"
#include "train/checkpoint/checkpoint_transfer.h"
#include "train/record/model_card.h"
#include "train/record/result_line.h"
#include "train/record/summary.h"
#include "train/run/junit.h"
#include "weights/hub_cache.h"

namespace finetune {
namespace {

// The given options, with the values that config.toml fixed at the run's start.
TrainOptions options_to_repeat(const TrainOptions& given, const RunDirectory& directory) {
  const std::vector<ConfigEntry> kept = read_config(directory.config(), ExitCode::model);
  return with_recipe_of(with_cut_of(given, kept), kept);
}

// Reads run.json and config.toml, which must be written by now.
RunIdentity identity_of(const TrainOptions& given, const RunDirectory& directory) {
  RunIdentity run;
  run.output = given.output;
  run.task = given.task;
  run.options = options_given(options_to_repeat(given, directory));
  run.seed = given.seed;
  for (const auto& [name, value] : read_facts(directory.facts())) {
    if (name == "task") run.task = value;
    if (name == "weights_sha256") run.weights_sha256 = value;
    if (name == "started" || name == "ended" || name == "data_sha256") {
      run.facts.emplace_back(name, value);
    }
  }
  return run;
}

TrainOutcome outcome_of(const TrainOptions& given, const RunDirectory& directory,
                        const std::vector<Assertion>& assertions, const Metrics& metrics) {
  TrainOutcome outcome;
  outcome.result_line = result_line(identity_of(given, directory), metrics);
  outcome.summary = summary_of(given, directory, metrics);
  AssertionReport report = evaluate_assertions(assertions, metrics);
  if (!given.junit.empty()) {
    write_junit(given.junit, junit_xml("train", given.output, report, metrics));
  }
  outcome.gate_table = report.table;
  outcome.failed_gates = report.failed();
  outcome.code = report.passed ? ExitCode::done : ExitCode::assertion;
  return outcome;
}

// Returns "" for a time that no run can have.
std::string started_text(const CheckpointState& state) {
  const auto found = state.totals.find(kStartedTotal);
  const bool has_date = found != state.totals.end() && is_date(found->second);
  return has_date ? date_text(int64_t(found->second)) : "";
}

int64_t rows_of(const SampleSet* set) {
  return set ? set->examples : 0;
}

// The facts about the training that an exported model carries, wherever it is moved.
std::string model_facts(const Task& task, const CheckpointState& state) {
  return facts_json({{"version", FINETUNE_VERSION},
                     {"started", started_text(state)},
                     {"exported", date_text(date_now())},
                     {"train_rows", concat(task.train_set().examples)},
                     {"eval_rows", concat(rows_of(task.eval_set()))},
                     {"data_sha256", state.data_sha256},
                     {"model_sha256", state.model_sha256}});
}

void write_run_facts(const TrainingRun& run, const std::string& weights_sha256,
                     const NamedFacts& calibration) {
  const TrainOptions& options = run.settings.options;
  const Task& task = *run.inputs->task;
  const Communicator& world = run.machine.world;
  NamedFacts facts = {
      {"version", FINETUNE_VERSION},
      {"started", started_text(run.state)},
      {"ended", date_text(date_now())},
      {"train_rows", concat(task.train_set().examples)},
      {"eval_rows", concat(rows_of(task.eval_set()))},
      {"task", options.task},
      {"model", options.model},
      {"code_path", run.learner.engine->backend().description()},
      {"precision", options.precision},
      {"seed", concat(options.seed)},
      {"virtual_shards", concat(*options.virtual_shards)},
      {"tensor_shards", concat(*options.tensor_shards)},
      {"processes", concat(world.size())},
      {"hosts", concat(world.hosts())},
  };
  if (const auto origin = hub_origin(options.model)) {
    facts.emplace_back("model_id", origin->id);
    facts.emplace_back("model_revision", origin->revision);
  }
  for (auto& fact : host_facts()) facts.push_back(std::move(fact));
  facts.emplace_back("data_sha256", run.state.data_sha256);
  facts.emplace_back("model_sha256", run.state.model_sha256);
  facts.emplace_back("weights_sha256", weights_sha256);
  facts.insert(facts.end(), calibration.begin(), calibration.end());
  write_facts(run.books->directory->facts(), facts);
}

// Loads the best step's weights in place of the last step's. Collective.
void load_best(const TrainingRun& run) {
  fs::path path;
  const CheckpointState& state = run.state;
  if (run.books) path = checkpoint_path(run.books->directory->checkpoints(), state.best_step);
  load_checkpoint(run.machine, run.learner, path, WithMoments::no, false);
  if (!run.books) return;
  log("exporting the best model: step ", state.best_step, ", ", run.settings.options.best_metric,
      " ", format_number(state.best_value));
}

// Whether the weights in this process's memory are finite.
bool own_weights_are_finite(Engine& engine) {
  const int64_t count = engine.table().size();
  Backend& backend = engine.backend();
  std::vector<double> sums(size_t((count + kNormBlock - 1) / kNormBlock));
  const size_t bytes = sums.size() * sizeof(double);
  const auto memory = backend.allocate(bytes);
  backend.block_square_sums(vector(engine.weights(), count), kNormBlock, {},
                            static_cast<double*>(memory.get()));
  backend.download(sums.data(), memory.get(), bytes);
  return std::isfinite(tree_sum(sums));
}

// Calibrates the model and computes the baselines. If memory or another resource runs out, this
// throws instead of leaving them out: with the last checkpoint, --resume can try again.
CalibrationReport calibrate(Task& task, const TrainOptions& options, Evaluator& evaluation,
                            Metrics& metrics) {
  try {
    CalibrationReport report = task.calibrate(evaluation, metrics);
    task.baselines();
    return report;
  } catch (const Error& error) {
    const char* without =
        options.ngram_mix == "yes" ? "--ngram-mix no --no-ngram-baseline" : "--no-ngram-baseline";
    throw Error(error.code(), concat(error.what(), "; --resume tries again, and with ", without,
                                     " it goes on without it"));
  }
}

void warn_of_columns(const TrainOptions& options, const CalibrationReport& report,
                     const Metrics& metrics) {
  std::vector<std::string> columns = options.number_columns;
  columns.insert(columns.end(), options.category_columns.begin(), options.category_columns.end());
  if (columns.empty() || metrics.contains("eval_mix_model")) return;
  warn("the columns beside the text have no effect (", join(columns, ", "),
       "): nothing is mixed with the model: ",
       report.why_no_mix.empty() ? "a mix is not surely better" : report.why_no_mix,
       "; give more evaluation rows (--eval-fraction), or leave out --number-columns and "
       "--category-columns");
}

// Rank 0: calibrates with the best evaluation, whose metrics go to `metrics`, and writes its files.
CalibrationReport finish_evaluation(const TrainingRun& run, Evaluator& best,
                                    const Metrics& best_metrics, Metrics& metrics) {
  const TrainOptions& options = run.settings.options;
  for (const auto& metric : best_metrics) metrics.insert(metric);
  metrics["best_step"] = double(run.state.best_step);
  CalibrationReport report = calibrate(*run.inputs->task, options, best, metrics);
  if (!report.line.empty()) log(report.line);
  warn_of_columns(options, report, metrics);
  if (options.ngram_mix == "yes" && !report.why_no_mix.empty()) {
    warn("--ngram-mix yes: there is no mix: ", report.why_no_mix);
  }
  const RunDirectory& directory = *run.books->directory;
  directory.require_there();
  best.write_files(directory.path());
  return report;
}

// Whether the weights are the best of several evaluations.
bool is_best_of_many(const TrainingRun& run) {
  const TrainOptions& options = run.settings.options;
  const int64_t samples = run.inputs->task->train_set().samples.size();
  const int64_t every = options.eval_every.value_or(steps_per_epoch(samples, *options.batch_size));
  return run.settings.has_eval && run.state.step > every;
}

ModelCard card_of(const TrainingRun& run, const Metrics& metrics, const std::string& sha256) {
  const Task& task = *run.inputs->task;
  return {.task = task.kind(),
          .model_type = std::string(run.settings.config.architecture->model_type),
          .base = run.inputs->model,
          .given = options_to_repeat(run.settings.given, *run.books->directory),
          .labels = task.labels(),
          .max_length = task.max_length(),
          .train_rows = task.train_set().examples,
          .eval_rows = rows_of(task.eval_set()),
          .date = date_text(date_now()),
          .data_sha256 = run.state.data_sha256,
          .weights_sha256 = sha256,
          .metrics = metrics,
          .pools_by_mean = pooling_of(run.settings.config) == Pooling::mean,
          .is_best_of_many = is_best_of_many(run)};
}

// Collective: rank 0 writes the model's directory. Returns the sha256 of its model.safetensors.
// `sha256`: of the engine's weights; empty: not known.
std::string export_best(const TrainingRun& run, const Metrics& metrics, std::string sha256) {
  if (!run.books) {
    with_model_tensors(run.machine, run.learner, WithMoments::no, [](ModelTensors&) {});
    return sha256;
  }
  const RunDirectory& directory = *run.books->directory;
  const Task& task = *run.inputs->task;
  directory.require_there();
  std::map<std::string, std::string> tokenizer_files = run.inputs->tokenizer_files;
  const EncoderConfig& config = run.settings.config;
  if (config.architecture->states_token_types && config.embeddings.pair_types) {
    std::string& stated = tokenizer_files["tokenizer_config.json"];
    stated = with_token_types(stated);
  }
  std::vector<ModelFile> files = task.model_files();
  for (const auto& [name, text] : tokenizer_files) files.push_back({name, text});
  const std::string facts = model_facts(task, run.state);
  files.push_back({std::string(kModelFactsFile), facts});
  with_model_tensors(run.machine, run.learner, WithMoments::no, [&](ModelTensors& tensors) {
    ScaledHeadTensors scaled(tensors, task.target_scale());
    const bool is_scaled = !task.target_scale().is_identity();
    ModelTensors& exported = is_scaled ? static_cast<ModelTensors&>(scaled) : tensors;
    if (is_scaled || sha256.empty()) sha256 = weights_sha256(exported);
    const std::string card = model_card(card_of(run, metrics, sha256));
    files.push_back({std::string(kModelCardFile), card});
    export_model(directory.model(),
                 {exported, run.settings.config.source_json, task.config_json(), std::move(files)});
  });
  return sha256;
}

// Logs a line of the summary. Without --json the terminal shows the summary itself.
void tell(const TrainOptions& options, const std::string& line) {
  options.json ? log(line) : log_to_file(line);
}

// The metrics before the first step; empty if the head began with random weights.
Metrics start_of(const TrainingRun& run) {
  if (!fits_head(run.settings.options) || is_quick(run.settings.options)) return {};
  for (const NamedNumbers& line : read_metrics_log(run.books->directory->metrics_log())) {
    const Metrics entry(line.begin(), line.end());
    const auto step = entry.find("step");
    if (step != entry.end() && step->second == 0) return entry;
  }
  return {};
}

// Rank 0: adds the rows and the baselines, which the model's card names.
void add_rows_and_baselines(const TrainingRun& run, Metrics& metrics) {
  Task& task = *run.inputs->task;
  metrics["train_rows"] = double(task.train_set().examples);
  if (!run.settings.has_eval) return;
  metrics["eval_rows"] = double(rows_of(task.eval_set()));
  const bool is_mix_of_fit =
      is_quick(run.settings.options) && metrics.contains("baseline_unmixed_accuracy");
  metrics.merge(frozen_metrics(is_mix_of_fit ? metrics : start_of(run)));
  add_baselines(task.baselines(), metrics,
                is_quick(run.settings.options) ? "--recipe auto" : kMoreTraining);
}

void add_memory(const TrainingRun& run, Metrics& metrics) {
  metrics["peak_memory_mb"] = peak_memory_mb();
  if (const int64_t peak = run.learner.engine->backend().device_memory().peak; peak > 0) {
    metrics["device_peak_memory_mb"] = double(peak) / (1024 * 1024);
  }
}

// Rank 0, at the end: whether --time-budget held.
void check_budget(const Settings& settings) {
  constexpr double kGrace = 1.05;
  const double taken = seconds_since_start() - settings.began;
  if (settings.ends_by == 0 || taken <= kGrace * (settings.ends_by - settings.began)) return;
  warn("--time-budget ", settings.options.time_budget, ": the command took ",
       format_fixed(taken, 0), " s");
}

}  // namespace

Metrics totals_of(const TrainingRun& run, double runtime, double epochs) {
  const CheckpointState& state = run.state;
  const auto total = [&](const char* name) {
    const auto found = state.totals.find(name);
    return found == state.totals.end() ? 0 : found->second;
  };
  const double seconds = std::max(1e-9, total("seconds"));
  Metrics metrics;
  metrics["train_loss"] = total("loss") / double(std::max<int64_t>(1, state.step));
  metrics["train_runtime"] = runtime;
  metrics["train_steps"] = double(state.step);
  metrics["train_epochs"] = epochs;
  metrics["train_samples_per_second"] = total("samples") / seconds;
  metrics["train_tokens_per_second"] = total("tokens") / seconds;
  if (run.books) metrics["startup_seconds"] = run.books->startup_seconds;
  return metrics;
}

bool weights_are_finite(const Machine& machine, const Learner& learner) {
  Communicator& world = machine.world;
  Engine& engine = *learner.engine;
  uint8_t finite = 1;
  agree_on_errors(world, [&] {
    finite = !speaks_for_weights(engine, *machine.groups) || own_weights_are_finite(engine);
  });
  std::vector<uint8_t> all(size_t(world.size()));
  world.all_gather(&finite, sizeof finite, all.data());
  return std::find(all.begin(), all.end(), 0) == all.end();
}

TrainOutcome finish_run(TrainingRun& run, Metrics metrics, Metrics best_metrics,
                        Evaluator* best_evaluation) {
  Communicator& world = run.machine.world;
  const bool leads = run.machine.leads();
  // Only rank 0 knows the best step, and whether to evaluate it again.
  struct Best {
    int64_t step, evaluate;
  } best{run.state.best_step, best_evaluation == nullptr};
  world.broadcast(&best, sizeof best, 0);
  const bool is_last = !run.settings.has_eval || best.step == run.state.step;
  if (leads) run.inputs->keep_sums(run.state);
  std::string sha256;
  with_model_tensors(run.machine, run.learner, WithMoments::no,
                     [&](ModelTensors& tensors) { sha256 = weights_sha256(tensors); });
  std::unique_ptr<Evaluator> again;
  if (run.settings.has_eval) {
    if (!is_last) load_best(run);
    if (best.evaluate) again = evaluate(run, best_metrics, [](double) { return true; });
  }
  CalibrationReport report;
  world.set_patient(!leads);  // rank 0 computes the baselines, however long they take
  agree_on_errors(world, [&] {
    if (!leads || !run.settings.has_eval) return;
    report = finish_evaluation(run, again ? *again : *best_evaluation, best_metrics, metrics);
  });
  world.set_patient(false);
  if (leads) add_rows_and_baselines(run, metrics);
  const std::string exported_sha256 = export_best(run, metrics, is_last ? sha256 : "");
  if (!leads) return {};
  add_memory(run, metrics);
  for (const std::string& line : result_lines(metrics)) tell(run.settings.options, line);
  const RunDirectory& directory = *run.books->directory;
  const TrainOptions& options = run.settings.options;
  directory.require_there();
  write_run_facts(run, sha256, report.facts);
  write_metrics(directory.metrics(), metrics);  // last: if this file exists, the run has ended
  if (options.keep_checkpoints.value_or(0) == 0) directory.remove_checkpoints();
  tell(options,
       concat("model: ", directory.model().string(), ", weights sha256 ", exported_sha256));
  check_budget(run.settings);
  return outcome_of(run.settings.given, directory, run.books->assertions, metrics);
}

TrainOutcome finished_outcome(const FinishedRun& run) {
  const RunDirectory& directory = *run.directory;
  log(directory.path().string(), ": the run is finished; nothing to resume");
  if (!has_model(directory)) {
    warn(directory.model().string(), " is gone; --overwrite trains the model again");
  }
  return outcome_of(run.given, directory, run.assertions,
                    read_metrics(directory.metrics(), ExitCode::model));
}

}  // namespace finetune

// Looks at the last weights, exports the best model, writes metrics and facts, checks the gates.
#include "train/finish.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "comm/agreement.h"
#include "core/date.h"
#include "core/error.h"
#include "core/files/files.h"
#include "core/log.h"
#include "core/process_stats.h"
#include "core/text/printable.h"
#include "distributed/reduce/tree_reduce.h"
#include "distributed/tensors/held_parts.h"
#include "engine/export_model.h"
#include "engine/scaled_head.h"
#include "tasks/baseline.h"
#include "tasks/repeated_texts.h"
#include "train/checkpoint/checkpoint_store.h"
#include "train/checkpoint/checkpoint_transfer.h"
#include "train/record/result_line.h"
#include "train/run/junit.h"
#include "weights/hub_cache.h"

namespace finetune {
namespace {

constexpr size_t kLongestShownMetric = 200;

// By run.json and config.toml, which have been written.
RunIdentity identity_of(const Session& session) {
  const fs::path config = session.directory->config();
  RunIdentity run;
  run.output = session.given.output;
  run.task = session.given.task;
  const std::vector<ConfigEntry> kept = read_config(config, ExitCode::model);
  run.options = options_given(with_recipe_of(with_cut_of(session.given, kept), kept));
  run.seed = session.given.seed;
  for (const auto& [name, value] : read_facts(session.directory->facts())) {
    if (name == "task") run.task = value;
    if (name == "weights_sha256") run.weights_sha256 = value;
    if (name == "started" || name == "ended" || name == "data_sha256") {
      run.facts.emplace_back(name, value);
    }
  }
  return run;
}

TrainOutcome outcome_of(const Session& session, const Metrics& metrics) {
  TrainOutcome outcome;
  outcome.result_line = result_line(identity_of(session), metrics);
  size_t width = 0;
  std::vector<std::pair<std::string, double>> lines;  // of a run that is read again: any names
  for (const auto& [name, value] : metrics) {
    lines.emplace_back(printable(name, kLongestShownMetric), value);
    width = std::max(width, lines.back().first.size());
  }
  for (const auto& [name, value] : lines) {
    outcome.summary +=
        concat(name, std::string(width - name.size() + 2, ' '), format_number(value), "\n");
  }
  for (const std::string& line : {unseen_line(metrics), baseline_line(metrics)}) {
    if (!line.empty()) outcome.summary += line + "\n";
  }
  AssertionReport report = evaluate_assertions(session.assertions, metrics);
  if (const std::string& junit = session.given.junit; !junit.empty()) {
    write_junit(junit, junit_xml("train", session.given.output, report, metrics));
  }
  outcome.gate_table = report.table;
  outcome.code = report.passed ? ExitCode::done : ExitCode::assertion;
  return outcome;
}

// Empty for a date that no run has.
std::string started_text(const CheckpointState& state) {
  constexpr double kLatest = 253402300799;  // in the year 9999
  const auto found = state.totals.find(kStartedTotal);
  const bool is_date =
      found != state.totals.end() && found->second >= 0 && found->second <= kLatest;
  return is_date ? date_text(int64_t(found->second)) : "";
}

int64_t rows_of(const SampleSet* set) {
  return set ? set->examples : 0;
}

// What an exported model says of its training, wherever it is moved to.
std::string model_facts(const Session& s) {
  return facts_json({{"version", FINETUNE_VERSION},
                     {"started", started_text(s.state)},
                     {"exported", date_text(date_now())},
                     {"train_rows", concat(s.task->train_set().examples)},
                     {"eval_rows", concat(rows_of(s.task->eval_set()))},
                     {"data_sha256", s.state.data_sha256},
                     {"model_sha256", s.state.model_sha256}});
}

void write_run_facts(const Session& session, const std::string& weights_sha256,
                     const NamedFacts& calibration) {
  NamedFacts facts = {
      {"version", FINETUNE_VERSION},
      {"started", started_text(session.state)},
      {"ended", date_text(date_now())},
      {"train_rows", concat(session.task->train_set().examples)},
      {"eval_rows", concat(rows_of(session.task->eval_set()))},
      {"task", session.options.task},
      {"model", session.options.model},
      {"code_path", session.engine->backend().description()},
      {"precision", session.options.precision},
      {"seed", concat(session.options.seed)},
      {"virtual_shards", concat(*session.options.virtual_shards)},
      {"tensor_shards", concat(*session.options.tensor_shards)},
      {"processes", concat(session.comm.size())},
      {"hosts", concat(session.comm.hosts())},
  };
  if (const auto origin = hub_origin(session.options.model)) {
    facts.emplace_back("model_id", origin->id);
    facts.emplace_back("model_revision", origin->revision);
  }
  for (auto& fact : host_facts()) facts.push_back(std::move(fact));
  facts.emplace_back("data_sha256", session.state.data_sha256);
  facts.emplace_back("model_sha256", session.state.model_sha256);
  facts.emplace_back("weights_sha256", weights_sha256);
  facts.insert(facts.end(), calibration.begin(), calibration.end());
  write_facts(session.directory->facts(), facts);
}

// The best step's weights in place of the last step's, on all processes.
void load_best(Session& session) {
  fs::path path;
  if (session.leads()) {
    path = checkpoint_path(session.directory->checkpoints(), session.state.best_step);
  }
  load_checkpoint(session, path, false, false);
  if (!session.leads()) return;
  log("exporting the best model: step ", session.state.best_step, ", ", session.best_metric, " ",
      format_number(session.state.best_value));
}

// Of the weights in this process's memory.
bool own_weights_are_finite(Session& s) {
  const int64_t count = s.engine->table().size();
  Backend& backend = s.engine->backend();
  std::vector<double> sums(size_t((count + kNormBlock - 1) / kNormBlock));
  const size_t bytes = sums.size() * sizeof(double);
  const auto memory = backend.allocate(bytes);
  backend.block_square_sums(vector(s.engine->weights(), count), kNormBlock, {},
                            static_cast<double*>(memory.get()));
  backend.download(sums.data(), memory.get(), bytes);
  return std::isfinite(tree_sum(sums));
}

// What goes with the model, and the baselines. A result that lacks them because the machine was
// short of something is an error: the last checkpoint is there, and --resume comes back to here.
CalibrationReport calibrate(Session& s, Evaluator& evaluator, Metrics& metrics) {
  try {
    CalibrationReport report = s.task->calibrate(evaluator, metrics);
    s.task->baselines();
    return report;
  } catch (const Error& error) {
    const char* without =
        s.options.ngram_mix == "yes" ? "--ngram-mix no --no-ngram-baseline" : "--no-ngram-baseline";
    throw Error(error.code(), concat(error.what(), "; --resume tries again, and with ", without,
                                     " it goes on without it"));
  }
}

}  // namespace

bool weights_are_finite(Session& s) {
  uint8_t finite = 1;
  agree_on_errors(s.comm, [&] {
    finite = !speaks_for_weights(*s.engine, *s.groups) || own_weights_are_finite(s);
  });
  std::vector<uint8_t> all(size_t(s.comm.size()));
  s.comm.all_gather(&finite, sizeof finite, all.data());
  return std::find(all.begin(), all.end(), 0) == all.end();
}

TrainOutcome finish_run(Session& s, Metrics metrics, Metrics best_metrics,
                        Evaluator* best_evaluation) {
  // Of rank 0, for all: is the best model another one, and must it be evaluated again?
  struct Best {
    int64_t step, evaluate;
  } best{s.state.best_step, best_evaluation == nullptr};
  s.comm.broadcast(&best, sizeof best, 0);
  if (s.leads()) s.wait_for_fingerprints();
  std::string sha256;
  with_model_tensors(s, WithMoments::no,
                     [&](ModelTensors& tensors) { sha256 = weights_sha256(tensors); });
  std::unique_ptr<Evaluator> again;
  if (s.has_eval) {
    if (best.step != s.state.step) load_best(s);
    if (best.evaluate) again = s.evaluate(best_metrics, [](double) { return true; });
  }
  CalibrationReport report;
  s.comm.set_patient(!s.leads());  // the baselines are rank 0's, however long they take
  agree_on_errors(s.comm, [&] {
    if (!s.leads() || !s.has_eval) return;
    if (again) best_evaluation = again.get();
    for (const auto& metric : best_metrics) metrics.insert(metric);
    metrics["best_step"] = double(s.state.best_step);
    report = calibrate(s, *best_evaluation, metrics);
    if (!report.line.empty()) log(report.line);
    if (s.options.ngram_mix == "yes" && !report.why_no_mix.empty()) {
      warn("--ngram-mix yes: there is no mix: ", report.why_no_mix);
    }
    s.directory->require_there();
    best_evaluation->write_files(s.directory->path());
  });
  s.comm.set_patient(false);
  if (s.leads()) s.directory->require_there();
  std::vector<ModelFile> files = s.leads() ? s.task->model_files() : std::vector<ModelFile>();
  for (const auto& [name, text] : s.tokenizer_files) files.push_back({name, text});
  const std::string facts = s.leads() ? model_facts(s) : "";
  if (s.leads()) files.push_back({std::string(kModelFactsFile), facts});
  with_model_tensors(s, WithMoments::no, [&](ModelTensors& tensors) {
    ScaledHeadTensors scaled(tensors, s.task->target_scale());
    const bool is_scaled = !s.task->target_scale().is_identity();
    export_model(s.directory->model(),
                 {is_scaled ? static_cast<ModelTensors&>(scaled) : tensors,
                  s.model.config.source_json, s.task->config_json(), std::move(files)});
  });
  if (!s.leads()) return {};
  metrics["peak_memory_mb"] = peak_memory_mb();
  metrics["train_rows"] = double(s.task->train_set().examples);
  if (s.has_eval) metrics["eval_rows"] = double(rows_of(s.task->eval_set()));
  if (s.has_eval) {
    add_baselines(s.task->baselines(), metrics);
    if (const std::string line = unseen_line(metrics); !line.empty()) log(line);
    const std::string line = baseline_line(metrics);
    // Without --json it is the last line of the results.
    if (!line.empty() && s.options.json) log(line);
    if (!line.empty() && !s.options.json) log_to_file(line);
  }
  s.directory->require_there();
  write_run_facts(s, sha256, report.facts);
  if (const int64_t peak = s.engine->backend().device_memory().peak; peak > 0) {
    metrics["device_peak_memory_mb"] = double(peak) / (1024 * 1024);
  }
  write_metrics(s.directory->metrics(), metrics);  // last: its presence says that the run has ended
  if (s.options.keep_checkpoints.value_or(0) == 0) s.directory->remove_checkpoints();
  log("model: ", s.directory->model().string(), ", weights sha256 ", sha256);
  return outcome_of(s, metrics);
}

TrainOutcome finished_outcome(const Session& session) {
  return outcome_of(session, read_metrics(session.directory->metrics(), ExitCode::model));
}

}  // namespace finetune

#include "train/session.h"

#include <algorithm>
#include <cmath>

#include "core/files.h"
#include "core/log.h"
#include "core/parallel.h"
#include "data/plan.h"
#include "tasks/registry.h"
#include "train/checkpoint_store.h"
#include "train/config_file.h"
#include "train/duration.h"
#include "train/option_values.h"
#include "train/pretrained.h"
#include "train/process_stats.h"
#include "weights/weights.h"

namespace finetune {
namespace {

OutputMode output_mode(const TrainOptions& options) {
  if (options.resume) return OutputMode::resume;
  return options.overwrite ? OutputMode::overwrite : OutputMode::create;
}

std::unique_ptr<Task> read_task(const TrainOptions& options, const ModelFiles& model,
                                const WeightSource& source) {
  TaskKind kind = options.task.empty() ? task_of_data(options.train[0]) : *task_named(options.task);
  bool has_head = source.find(head_weight(kind)) != nullptr;
  auto task = make_task(kind, task_options(options), *model.tokenizer, model.config,
                        has_head && !options.reinit_head);
  if (has_head && !options.reinit_head && !task->keeps_head()) {
    throw model_error(source.path().string(), ": the model has a head for other labels (",
                      model.config.labels.size(), " of its own, the data has ",
                      task->labels().size(), "); --reinit-head starts a new one");
  }
  return task;
}

std::vector<Assertion> read_assertions(const TrainOptions& options, const Task& task) {
  std::vector<Assertion> assertions;
  for (const std::string& text : options.assertions) assertions.push_back(parse_assertion(text));
  if (!options.baseline.empty()) {
    const auto& own = run_metric_names();
    auto larger_is_better = [&](const std::string& metric) {
      bool of_run = std::find(own.begin(), own.end(), metric) != own.end();
      return of_run ? larger_run_metric_is_better(metric) : task.larger_is_better(metric);
    };
    for (auto& assertion : baseline_assertions(options.baseline, options.tolerances, larger_is_better)) {
      assertions.push_back(std::move(assertion));
    }
  }
  std::vector<std::string> available = run_metric_names();
  if (task.eval_set()) {
    for (auto& name : task.metric_names()) available.push_back(name);
  }
  check_assertions(assertions, available);
  return assertions;
}

std::string checked_best_metric(const TrainOptions& options, const Task& task) {
  if (!task.eval_set()) return "";
  if (options.best_metric.empty()) return task.best_metric();
  std::vector<std::string> names = task.metric_names();
  for (const std::string& name : {options.best_metric, "eval_" + options.best_metric}) {
    if (std::find(names.begin(), names.end(), name) != names.end()) return name;
  }
  throw usage_error("--best-metric ", options.best_metric, ": this run gives ", join(names, ", "));
}

int lowest_trained_layer(const TrainOptions& options, const BertConfig& config) {
  if (options.freeze == "none") return 0;
  if (options.freeze == "embeddings") return 1;
  auto layers = parse_int(options.freeze);
  if (!layers || *layers < 0 || *layers > config.num_hidden_layers) {
    throw usage_error("--freeze ", options.freeze, ": must be none, embeddings, or a number of layers up to ",
                      config.num_hidden_layers);
  }
  return int(*layers) + 1;
}

Schedule make_schedule(const TrainOptions& options, int64_t samples) {
  int64_t per_epoch = steps_per_epoch(samples, options.batch_size);
  Schedule schedule;
  schedule.kind = options.schedule == "linear"   ? ScheduleKind::linear
                  : options.schedule == "cosine" ? ScheduleKind::cosine
                  : options.schedule == "constant" ? ScheduleKind::constant
                                                   : ScheduleKind::polynomial;
  schedule.learning_rate = options.learning_rate;
  schedule.total_steps = options.max_steps > 0
                             ? options.max_steps
                             : int64_t(std::ceil(options.epochs * double(per_epoch) - 1e-9));
  schedule.total_steps = std::max<int64_t>(1, schedule.total_steps);
  schedule.warmup_steps =
      options.warmup_steps >= 0
          ? options.warmup_steps
          : int64_t(std::ceil(double(schedule.total_steps) * options.warmup_ratio));
  return schedule;
}

// Compares with the checkpoint's options and takes over what belongs to the run.
void check_resumed_options(TrainOptions& options, const FoundCheckpoint& found) {
  auto there = parse_config_text(found.state.options, found.file.path.string());
  for (const ConfigEntry& entry : there) {
    if (entry.name == "virtual-shards" && options.virtual_shards == 0 && !entry.values.empty()) {
      options.virtual_shards = parse_int(entry.values[0]).value_or(1);
    }
  }
  if (options.virtual_shards == 0) options.virtual_shards = 1;
  auto now = parse_config_text(write_config(config_items(options), ""), "the command line");
  std::vector<std::string> differences = config_differences(there, now, result_option_names());
  if (!differences.empty()) {
    throw usage_error("--resume: options differ from those of ", found.file.path.string(), ": ",
                      join(differences, ", "), "; give the run's own, or start another --output");
  }
}

std::vector<fs::path> data_files(const TrainOptions& options) {
  std::vector<fs::path> files(options.train.begin(), options.train.end());
  files.insert(files.end(), options.eval.begin(), options.eval.end());
  return files;
}

std::vector<fs::path> model_files(const ModelFiles& model, const WeightSource& source) {
  std::vector<fs::path> files = {model.directory.config};
  for (const auto& file : model.tokenizer->files()) files.push_back(file);
  for (const auto& file : source.files()) files.push_back(file);
  return files;
}

StepOptions step_options(const Session& session) {
  const TrainOptions& o = session.options;
  StepOptions step;
  step.seed = o.seed;
  step.virtual_shards = o.virtual_shards;
  step.micro_batch_tokens = session.micro_batch_tokens;
  step.dropout = o.dropout;
  step.max_grad_norm = o.max_grad_norm;
  step.weight_decay = o.weight_decay;
  step.adam_beta1 = o.adam_beta1;
  step.adam_beta2 = o.adam_beta2;
  step.adam_epsilon = o.adam_epsilon;
  step.layer_lr_decay = o.layer_lr_decay;
  step.lowest_layer = lowest_trained_layer(o, session.model.config);
  return step;
}

void describe(const Session& session, const PretrainedReport& loaded) {
  const Engine& engine = *session.engine;
  log("model: ", session.model.directory.directory.string(), ", ",
      engine.config().num_hidden_layers, " layers, hidden ", engine.config().hidden_size, ", ",
      engine.table().count(), " parameters");
  for (const auto& line : loaded.lines) log(line);
  for (const auto& line : session.task->describe()) log(line);
  log("computing in fp32 on ", session.engine->backend().description(), ", micro-batches of up to ",
      session.micro_batch_tokens, " tokens");
  log(session.schedule.total_steps, " steps of ", session.options.batch_size, " samples, ",
      session.schedule.warmup_steps, " of them warm-up");
}

}  // namespace

void Session::wait_for_fingerprints() {
  const std::string& data = data_fingerprint->result();
  const std::string& weights = model_fingerprint->result();
  auto check = [&](std::string& kept, const std::string& now, const char* what) {
    if (!kept.empty() && kept != now) {
      throw data_error("--resume: ", what, " has changed since the checkpoint was written (sha256 ",
                       now.substr(0, 12), "…, then ", kept.substr(0, 12), "…)");
    }
    kept = now;
  };
  check(state.data_sha256, data, "the data");
  check(state.model_sha256, weights, "--model");
}

CheckpointArenas Session::arenas() {
  return {engine->weights(), step->first_moments(), step->second_moments()};
}

std::unique_ptr<Session> prepare_session(const TrainOptions& given) {
  auto session = std::make_unique<Session>();
  Session& s = *session;
  s.options = given;
  TrainOptions& options = s.options;
  validate(options);
  if (!options.time_limit.empty()) s.time_limit = parse_duration(options.time_limit, "--time-limit");
  for (const std::string& text : options.assertions) parse_assertion(text);
  check_output(options.output, output_mode(options));
  auto backend = make_backend(options.device, options.threads);
  s.model = open_model(options.model, true);
  auto source = open_weights(s.model.directory.weights);
  s.task = read_task(options, s.model, *source);
  s.assertions = read_assertions(options, *s.task);
  s.best_metric = checked_best_metric(options, *s.task);

  const TokenizedSamples& samples = s.task->train_set().samples;
  options.task = name_of(s.task->kind());
  options.max_length = s.task->max_length();
  options.precision = "fp32";
  s.schedule = make_schedule(options, samples.size());
  s.micro_batch_tokens = options.micro_batch_tokens > 0
                             ? options.micro_batch_tokens
                             : auto_micro_batch_tokens(s.model.config, options.max_length);
  options.micro_batch_tokens = s.micro_batch_tokens;

  std::optional<FoundCheckpoint> found;
  if (options.resume) {
    found = newest_valid_checkpoint(fs::path(options.output) / "checkpoints");
    if (found) check_resumed_options(options, *found);
  }
  if (options.virtual_shards == 0) options.virtual_shards = 1;

  // Buffers for the largest micro-batch of training and evaluation.
  MicroBatchLimits limits = micro_batch_limits(samples, s.micro_batch_tokens, options.batch_size);
  s.engine = std::make_unique<Engine>(std::move(backend), s.model.config, s.task->head());
  PretrainedReport loaded = load_pretrained(
      s.engine->table(), *source, s.model.config.initializer_range, options.seed,
      options.reinit_head ? HeadPolicy::renew : HeadPolicy::keep_or_new, s.engine->weights());
  s.data_fingerprint = std::make_unique<Fingerprint>(data_files(options));
  s.model_fingerprint = std::make_unique<Fingerprint>(model_files(s.model, *source));
  source.reset();
  if (const SampleSet* eval = s.task->eval_set()) {
    MicroBatchLimits evaluation =
        micro_batch_limits(eval->samples, s.micro_batch_tokens, s.engine->evaluation_sequences());
    s.engine->reserve(std::max(limits.tokens, evaluation.tokens),
                      std::max(limits.sequences, evaluation.sequences), true);
  } else {
    s.engine->reserve(limits.tokens, limits.sequences, true);
  }
  s.task->reserve(s.engine->backend(), limits.sequences);
  s.step = std::make_unique<TrainingStep>(*s.engine, *s.task, step_options(s), options.batch_size);

  s.directory = std::make_unique<RunDirectory>(options.output, output_mode(options));
  if (found) {
    // A run that has its metrics has ended; with --resume nothing of it changes.
    s.finished = fs::exists(s.directory->metrics());
    if (!s.finished) s.state = read_checkpoint(found->file.path, s.engine->table(), s.arenas());
  }
  open_console(options.quiet);
  enable_progress(!options.no_progress);
  if (s.finished) return session;
  open_log_file(s.directory->log());
  describe(s, loaded);
  if (found) log("continuing from ", found->file.path.string(), ", step ", s.state.step);
  else if (options.resume) log("--resume: no checkpoint yet, starting from the beginning");
  s.state.options = write_config(config_items(options), config_marker(FINETUNE_VERSION));
  s.state.labels = s.task->labels();
  s.state.version = FINETUNE_VERSION;
  write_file(s.directory->config(), s.state.options);
  finetune::create_directories(s.directory->checkpoints());
  s.metrics_log = std::make_unique<MetricsLog>(s.directory->metrics_log(), found ? s.state.step : -1);
  s.startup_seconds = seconds_since_start();
  return session;
}

}  // namespace finetune

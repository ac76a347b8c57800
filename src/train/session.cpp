#include "train/session.h"

#include <algorithm>
#include <cmath>

#include "core/files.h"
#include "core/log.h"
#include "core/parallel.h"
#include "data/plan.h"
#include "tasks/registry.h"
#include "train/config_file.h"
#include "train/duration.h"
#include "train/option_values.h"
#include "train/pretrained.h"
#include "train/process_stats.h"
#include "train/resume.h"
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

std::vector<std::string> metrics_of_run(const Task& task) {
  std::vector<std::string> names = run_metric_names();
  if (!task.eval_set()) return names;
  for (const auto& more : {task.metric_names(), evaluation_metric_names()}) {
    names.insert(names.end(), more.begin(), more.end());
  }
  return names;
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
    throw usage_error("--freeze ", options.freeze,
                      ": must be none, embeddings, or a number of layers up to ",
                      config.num_hidden_layers);
  }
  return int(*layers) + 1;
}

Schedule make_schedule(const TrainOptions& options, int64_t samples) {
  int64_t per_epoch = steps_per_epoch(samples, options.batch_size);
  Schedule schedule;
  schedule.kind = options.schedule == "linear"     ? ScheduleKind::linear
                  : options.schedule == "cosine"   ? ScheduleKind::cosine
                  : options.schedule == "constant" ? ScheduleKind::constant
                                                   : ScheduleKind::polynomial;
  schedule.learning_rate = options.learning_rate;
  auto by_epochs = int64_t(std::ceil(options.epochs * double(per_epoch) - 1e-9));
  schedule.total_steps = options.max_steps.value_or(std::max<int64_t>(1, by_epochs));
  schedule.warmup_steps =
      options.warmup_steps.value_or(warmup_steps_for(schedule.total_steps, options.warmup_ratio));
  return schedule;
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

// What the run reads besides its checkpoints.
std::vector<fs::path> input_files(const Session& session, const WeightSource& source) {
  std::vector<fs::path> files = data_files(session.options);
  for (auto& file : model_files(session.model, source)) files.push_back(std::move(file));
  if (!session.options.baseline.empty()) files.emplace_back(session.options.baseline);
  return files;
}

// Buffers for the largest micro-batch of training and evaluation.
void reserve_buffers(Session& s) {
  MicroBatchLimits training =
      micro_batch_limits(s.task->train_set().samples, s.micro_batch_tokens, s.options.batch_size);
  MicroBatchLimits largest = training;
  if (const SampleSet* eval = s.task->eval_set()) {
    MicroBatchLimits evaluation =
        micro_batch_limits(eval->samples, s.micro_batch_tokens, s.engine->evaluation_sequences());
    largest.tokens = std::max(largest.tokens, evaluation.tokens);
    largest.sequences = std::max(largest.sequences, evaluation.sequences);
  }
  s.engine->reserve(largest.tokens, largest.sequences, true, s.options.recompute);
  s.task->reserve(s.engine->backend(), training.sequences);
}

StepOptions step_options(const Session& session, int lowest_layer) {
  const TrainOptions& o = session.options;
  StepOptions step;
  step.seed = o.seed;
  step.virtual_shards = *o.virtual_shards;
  step.micro_batch_tokens = session.micro_batch_tokens;
  step.dropout = o.dropout.value_or(-1);
  step.max_grad_norm = o.max_grad_norm;
  step.weight_decay = o.weight_decay;
  step.adam_beta1 = o.adam_beta1;
  step.adam_beta2 = o.adam_beta2;
  step.adam_epsilon = o.adam_epsilon;
  step.layer_lr_decay = o.layer_lr_decay;
  step.lowest_layer = lowest_layer;
  return step;
}

void describe(const Session& session, const PretrainedReport& loaded) {
  const Engine& engine = *session.engine;
  log("model: ", session.model.directory.directory.string(), ", ",
      engine.config().num_hidden_layers, " layers, hidden ", engine.config().hidden_size, ", ",
      engine.table().count(), " parameters");
  for (const auto& line : loaded.lines) log(line);
  for (const auto& line : session.task->describe()) log(line);
  log("computing on ", session.engine->backend().description(), ", micro-batches of up to ",
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

std::unique_ptr<Evaluation> Session::evaluate(Metrics& metrics,
                                              const std::function<bool(double)>& poll) {
  double start = seconds_since_start();
  auto evaluation = task->start_evaluation();
  const SampleSet& set = *task->eval_set();
  if (!engine->evaluate(set, *evaluation, micro_batch_tokens, poll)) return nullptr;
  metrics = evaluation->metrics();
  double seconds = std::max(1e-9, seconds_since_start() - start);
  metrics["eval_runtime"] = seconds;
  metrics["eval_samples_per_second"] = double(set.samples.size()) / seconds;
  return evaluation;
}

std::unique_ptr<Session> prepare_session(const TrainOptions& given) {
  auto session = std::make_unique<Session>();
  Session& s = *session;
  s.options = given;
  TrainOptions& options = s.options;
  validate(options);
  if (!options.time_limit.empty()) {
    s.time_limit = parse_duration(options.time_limit, "--time-limit");
  }
  for (const std::string& text : options.assertions) parse_assertion(text);
  check_output(options.output, output_mode(options));

  std::optional<FoundCheckpoint> found;
  if (options.resume && output_state(options.output) == OutputState::run) {
    s.directory = std::make_unique<RunDirectory>(options.output, OutputMode::resume);
    if ((s.finished = is_finished(*s.directory))) {
      s.assertions = finished_assertions(*s.directory, options);
      open_console(options.quiet);
      return session;
    }
    found = checkpoint_to_continue(*s.directory);
    if (found) continue_with_options(options, found->state.options, found->file.path.string());
  }

  auto backend = make_backend(options.device, options.threads.value_or(0), options.precision);
  s.model = open_model(options.model, true);
  int lowest_layer = lowest_trained_layer(options, s.model.config);
  auto source = open_weights(s.model.directory.weights);
  if (options.overwrite) check_inputs_survive(options.output, input_files(s, *source));
  s.task = read_task(options, s.model, *source);
  s.assertions = read_assertions(options, metrics_of_run(*s.task));
  s.best_metric = checked_best_metric(options, *s.task);
  s.schedule = make_schedule(options, s.task->train_set().samples.size());
  s.micro_batch_tokens = options.micro_batch_tokens.value_or(
      auto_micro_batch_tokens(s.model.config, s.task->max_length()));
  options.task = name_of(s.task->kind());
  options.max_length = s.task->max_length();
  options.precision = backend->compute_type() == DType::bf16 ? "bf16" : "fp32";
  options.best_metric = s.best_metric;
  options.micro_batch_tokens = s.micro_batch_tokens;
  options.virtual_shards = options.virtual_shards.value_or(1);

  s.engine = std::make_unique<Engine>(std::move(backend), s.model.config, s.task->head());
  PretrainedReport loaded = load_pretrained(
      s.engine->table(), *source, s.model.config.initializer_range, options.seed,
      options.reinit_head ? HeadPolicy::renew : HeadPolicy::keep_or_new, s.engine->weights());
  s.data_fingerprint = std::make_unique<Fingerprint>(data_files(options));
  s.model_fingerprint = std::make_unique<Fingerprint>(model_files(s.model, *source));
  source.reset();  // its mapping is as large as the weights
  reserve_buffers(s);
  s.step = std::make_unique<TrainingStep>(*s.engine, *s.task, step_options(s, lowest_layer),
                                          options.batch_size);
  if (found) {
    s.state = std::move(found->state);
    s.wait_for_fingerprints();  // other data: to be said now, not after hours
    read_checkpoint(found->file.path, s.engine->table(), s.arenas(), true);
  }

  if (!s.directory) {
    s.directory = std::make_unique<RunDirectory>(options.output, output_mode(options));
  }
  open_console(options.quiet);
  enable_progress(!options.no_progress);
  open_log_file(s.directory->log());
  describe(s, loaded);
  if (found) {
    log("continuing from ", found->file.path.string(), ", step ", s.state.step);
  } else if (options.resume) {
    log("--resume: no checkpoint yet, starting from the beginning");
  }
  s.state.options =
      write_config(config_items(with_absolute_paths(options)), config_marker(FINETUNE_VERSION));
  s.state.labels = s.task->labels();
  s.state.version = FINETUNE_VERSION;
  write_file(s.directory->config(), s.state.options);
  finetune::create_directories(s.directory->checkpoints());
  s.metrics_log = std::make_unique<MetricsLog>(s.directory->metrics_log(),
                                               found ? s.state.step : -1, evaluated_step(s.state));
  s.startup_seconds = seconds_since_start();
  return session;
}

}  // namespace finetune

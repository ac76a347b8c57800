// Prepares a training run: everything before its first step, on every process.
#include <algorithm>
#include <chrono>
#include <string_view>
#include <thread>

#include "comm/agreement.h"
#include "comm/placement.h"
#include "core/date.h"
#include "core/failure.h"
#include "core/files/files.h"
#include "core/log.h"
#include "core/process_stats.h"
#include "core/threads/parallel.h"
#include "distributed/rank0_values.h"
#include "engine/model_outputs.h"
#include "engine/pretrained.h"
#include "engine/scaled_head.h"
#include "inference/equal_processes.h"
#include "tasks/registry.h"
#include "train/checkpoint/checkpoint_transfer.h"
#include "train/layout/stages.h"
#include "train/options/config_file.h"
#include "train/options/duration.h"
#include "train/options/option_transfer.h"
#include "train/options/option_values.h"
#include "train/plan/disk_forecast.h"
#include "train/recipe/recipe.h"
#include "train/resume.h"
#include "train/run/junit.h"
#include "train/run/process_check.h"
#include "train/run/run_setup.h"
#include "train/session.h"
#include "weights/weights.h"

namespace finetune {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(2);

// What rank 0 has found out, besides the options.
struct Facts {
  MicroBatchLimits evaluation;  // zeros: no evaluation
  int64_t has_eval = 0;
  int64_t found = 0;  // there is a checkpoint to continue
  int64_t step = 0;   // its step
  int64_t micro_batch_tokens = 0;
};

class Preparation {
 public:
  Preparation(Session& session, const TrainOptions& options, const SignalGuard& signals,
              SharedInputs* shared)
      : s_(session),
        comm_(session.comm),
        signals_(signals),
        keeps_inputs_(shared != nullptr),
        inputs_(shared ? *shared : own_inputs_),
        began_(shared ? seconds_since_start() : 0) {
    s_.given = options;
    s_.options = with_fixed_recipe(options);
  }

  void run();

 private:
  // One process of each host reads the data; of those that share weights one reads them.
  bool reads() const { return comm_.local_rank() == 0; }
  bool reads_weights() const { return !s_.groups || s_.groups->data().local_rank() == 0; }
  void check_options();
  void look_at_output();
  void compare_finished();
  void check_stop(std::string_view when) const;  // Error(its exit code) after a signal
  void choose_machine();
  void open_model_files();
  void open_source();
  void open_data_files();
  void sum_inputs();
  void read();
  void read_data_and_model(int own_threads);
  void resolve_options();
  void share_samples();
  void load();
  void continue_run();
  void open_files();

  Session& s_;
  Communicator& comm_;
  const SignalGuard& signals_;
  const bool keeps_inputs_;  // for other runs
  SharedInputs own_inputs_;
  SharedInputs& inputs_;
  const double began_;  // seconds since the process started
  std::optional<FoundCheckpoint> found_;
  std::vector<std::string> adopted_;      // options that are the checkpoint's
  std::vector<std::string> label_order_;  // so are these
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<LayoutPeers> peers_;  // until the engine has the backend
  std::unique_ptr<WeightSource> source_;
  PretrainedReport loaded_;
  TrainingArrays arrays_;
  Facts facts_;
  std::string code_path_;             // rank 0's: "CPU, AVX2, bf16"
  std::vector<std::string> remarks_;  // for the log: differing processes, binding, recipe
};

void Preparation::check_options() {
  agree_on_errors(comm_, [&] {
    validate(s_.options);
    if (const std::string& limit = s_.options.time_limit; !limit.empty())
      s_.time_limit = parse_duration(limit, "--time-limit");
    comm_.set_timeout(comm_timeout_seconds(s_.options));
    comm_.set_patient(false);
    comm_.set_remedy("--resume continues from the newest whole checkpoint");
    if (s_.options.threads) set_threads(int(*s_.options.threads));  // already of reading files
  });
  require_equal_processes(comm_, s_.options);
}

void Preparation::look_at_output() {
  TrainOptions& options = s_.options;
  agree_on_errors(comm_, [&] {
    if (!s_.leads()) return;
    check_output(options.output, output_mode(options));
    if (!options.junit.empty()) check_junit_output(options.junit, options.output, is_name_of_run);
    if (!options.resume || output_state(options.output) != OutputState::run) return;
    s_.directory = std::make_unique<RunDirectory>(options.output, OutputMode::resume);
    if ((s_.finished = has_ended(options.output))) {
      s_.assertions = finished_assertions(*s_.directory, options);
      return;
    }
    found_ = checkpoint_to_continue(*s_.directory);
    if (found_) {
      adopted_ = continue_from(*found_, options);
    }
  });
  comm_.broadcast(&s_.finished, sizeof s_.finished, 0);
  if (s_.finished) return;
  options = options_from_text(broadcast_from_rank0(comm_, options_to_text(options)));
  label_order_ = names_from_text(broadcast_from_rank0(
      comm_, names_to_text(found_ ? found_->state.labels : std::vector<std::string>())));
}

// A finished run's metrics answer for the data and the model it was trained on, and for no others.
void Preparation::compare_finished() {
  comm_.note("comparing data and model with the finished run's", -1);
  take_finished_sums(*s_.directory, s_.state);
  open_data_files();
  open_model_files();
  open_source();
  sum_inputs();
  while (!s_.data_fingerprint->finished() || !s_.model_fingerprint->finished()) {
    check_stop("while comparing data and model with the finished run's");
    std::this_thread::sleep_for(kPollInterval);
  }
  s_.wait_for_fingerprints();
}

void Preparation::check_stop(std::string_view when) const {
  const StopRequest request = signals_.request();
  if (request == StopRequest::none) return;
  throw Error(exit_code_of(request), concat("stopped by a signal ", when, "; nothing is written"));
}

void Preparation::choose_machine() {
  TrainOptions& options = s_.options;
  std::string wanted = wanted_device(options);
  if (wanted == "auto" && found_) wanted = device_of(found_->state.code_path);
  std::string unused_gpu;
  const std::string device = agreed_device(comm_, broadcast_from_rank0(comm_, wanted), unused_gpu);
  options.precision = agreed_precision(comm_, device, options.precision);
  const int threads = options.threads ? int(*options.threads) : cores_for_process(comm_);
  agree_on_errors(comm_, [&] {
    backend_ = make_backend(device, threads, options.precision, comm_.local_rank());
  });
  s_.device_at_start = backend_->device_memory();
  code_path_ = backend_->code_path();
  if (options.precision == "bf16") {
    require_equal_code_paths(comm_, s_.groups->tensor(), code_path_);
  }
  remarks_ = {unused_gpu, code_path_warning(comm_, code_path_), binding_advice(comm_)};
}

void Preparation::open_model_files() {
  const std::string& path = s_.options.model;
  if (reads_weights()) require_no_pipe(path);
  s_.model = reads() ? open_model(path) : open_model_config(path, reads_weights());
}

void Preparation::open_source() {
  source_ = open_weights_of(s_.model);
  if (!reads()) return;
  for (const fs::path& file : model_files(s_.model, *source_)) require_file(file, ExitCode::model);
  if (s_.leads()) s_.tokenizer_files = contents_of(s_.model.tokenizer->files(), ExitCode::model);
}

void Preparation::open_data_files() {
  if (comm_.hosts() > 1) require_no_pipes(s_.options, comm_.hosts());
  s_.data = inputs_.open(s_.options, [&] { check_stop("while reading data from a pipe"); });
}

void Preparation::sum_inputs() {
  const std::vector<fs::path> files = model_files(s_.model, *source_);
  s_.data_fingerprint = inputs_.sum(s_.data.all(), ExitCode::data);
  s_.model_fingerprint = inputs_.sum({files.begin(), files.end()}, ExitCode::model);
}

void Preparation::read() {
  comm_.note("reading data and model", -1);
  agree_on_errors(comm_, [&, own_threads = threads()] {
    try {
      read_data_and_model(own_threads);
    } catch (const Error& error) {
      if (found_) blame_checkpoint(error, found_->file.path, adopted_);
      throw;
    }
  });
  require_equal_configs(comm_, s_.model.config);
}

void Preparation::read_data_and_model(int own_threads) {
  const TrainOptions& options = s_.options;
  open_model_files();
  lowest_trained_layer(options, s_.model.config);  // refuses what the model does not have
  stages_of(options, s_.model.config, HeadKind::sequence);
  if (reads_weights()) open_source();
  if (!reads()) return;
  set_threads(std::max(own_threads, std::min(own_threads * comm_.local_size(), available_cores())));
  if (s_.leads() && options.overwrite) {
    check_own_inputs_survive(options, s_.model, *source_);
  }
  open_data_files();
  s_.task = inputs_.read(options, s_.data, s_.model, *source_, label_order_);
  if (!keeps_inputs_) inputs_.forget_task();
  if (s_.leads()) {
    s_.assertions = read_assertions(options, metrics_of_run(options, s_.groups->layout(), *s_.task,
                                                            !backend_->uses_host_memory()));
    s_.best_metric = checked_best_metric(options, *s_.task);
  }
}

// Rank 0 knows the data: what follows from them goes to all.
void Preparation::resolve_options() {
  TrainOptions& options = s_.options;
  const int64_t device_bytes = least_device_bytes(comm_, *backend_);
  if (s_.leads()) {
    const Task& task = *s_.task;
    options.task = finetune::name_of(task.kind());
    options.max_length = task.max_length();
    options.best_metric = s_.best_metric;
    remarks_.push_back(fill_recipe(options, s_.given, recipe_facts(task, s_.model.config)));
    facts_.micro_batch_tokens = options.micro_batch_tokens.value_or(
        auto_micro_batch_tokens(s_.model.config, task.max_length(), device_bytes));
    take_layout_defaults(options, s_.groups->layout());
    if (!options.micro_batches) options.micro_batch_tokens = facts_.micro_batch_tokens;
    if (const SampleSet* eval = task.eval_set()) {
      facts_.has_eval = 1;
      const int64_t tokens = evaluation_tokens(*backend_, s_.model.config,
                                               facts_.micro_batch_tokens, *options.tensor_shards);
      facts_.evaluation = micro_batch_limits(eval->samples, MicroBatching::of_tokens(tokens),
                                             Engine::kEvaluationSequences);
    }
    facts_.found = found_.has_value();
    if (found_) facts_.step = found_->state.step;
  }
  options = options_from_text(broadcast_from_rank0(comm_, options_to_text(options)));
  comm_.broadcast(&facts_, sizeof facts_, 0);
  s_.evaluation = facts_.evaluation;
  s_.micro_batch_tokens = facts_.micro_batch_tokens;
  s_.has_eval = facts_.has_eval != 0;
}

void Preparation::share_samples() {
  if (reads()) arrays_ = s_.task->training_arrays();
  s_.shared_samples = share_with_host(comm_, reads() ? &arrays_ : nullptr, arrays_);
  if (s_.shared_samples && reads() && !keeps_inputs_) s_.task->release_training_arrays();
  s_.objective = make_objective(arrays_);
  s_.head = arrays_.head;
  s_.schedule = make_schedule(s_.options, s_.objective->samples().size());
  cut_into_stages(s_);
}

void Preparation::load() {
  comm_.note("loading weights", -1);
  const ParameterTable table(s_.model.config, arrays_.head);
  Communicator& replicas = s_.groups->data();
  agree_on_errors(comm_, [&] {
    if (!reads_weights()) return;
    check_initial(s_.options, table, *source_);
    if (!s_.leads()) return;
    const int64_t epoch = steps_per_epoch(s_.objective->samples().size(), *s_.options.batch_size);
    require_disk(s_.options,
                 forecast_disk(s_.options, table, s_.schedule.total_steps, epoch, s_.has_eval));
  });
  peers_ = std::make_unique<LayoutPeers>(*backend_, *s_.groups, comm_timeout_seconds(s_.options));
  s_.tensor_sum = make_tensor_sum(s_, *backend_, peers_.get(), facts_.evaluation);
  with_memory_advice("for weights and optimizer; a smaller model needs less", [&] {
    s_.engine = std::make_unique<Engine>(std::move(backend_), s_.model.config, arrays_.head,
                                         replicas, own_part(s_), s_.tensor_sum.get());
  });
  s_.peers = std::move(peers_);
  agree_on_errors(comm_, [&] {
    if (!reads_weights()) return;
    s_.engine->set_weights([&](float* arena) {
      loaded_ =
          load_initial(s_.options, s_.model.config, table, s_.engine->table(), *source_, arena);
      unscale_head(s_.engine->table(), arrays_.target_scale, arena);
    });
  });
  s_.engine->share_weights(replicas);
  require_equal_content(*s_.groups, arrays_, *s_.engine, source_.get());
  if (s_.leads()) sum_inputs();
  source_.reset();  // its mapping is as large as the weights
  if (!s_.leads() && s_.shared_samples) s_.task.reset();
}

void Preparation::continue_run() {
  if (!facts_.found) return;
  comm_.note("reading the checkpoint", -1);
  agree_on_errors(comm_, [&] {
    if (!s_.leads()) return;
    s_.state = std::move(found_->state);
    s_.wait_for_fingerprints();  // other data: to be said now, not after hours
  });
  s_.state.step = facts_.step;
  load_checkpoint(s_, found_ ? found_->file.path : fs::path(), true, true);
}

void Preparation::open_files() {
  const TrainOptions& options = s_.options;
  if (!s_.directory) {
    s_.directory = std::make_unique<RunDirectory>(options.output, output_mode(options));
  }
  // First of all files: it makes the directory a run's, which --resume takes up whatever happens.
  s_.state.options =
      write_config(config_items(with_absolute_paths(options)), config_marker(FINETUNE_VERSION));
  write_file(s_.directory->config(), s_.state.options);
  open_console(options.quiet);
  enable_progress(!options.no_progress);
  open_log_file(s_.directory->log());
  remarks_.push_back(loaded_.warning);
  // A run that goes on has the checkpoint's weights, whatever was new at its start.
  describe_session(s_, found_ ? std::vector<std::string>() : loaded_.lines, remarks_);
  write_layout(s_);
  if (options.resume)
    describe_continuation(found_ ? &found_->file.path : nullptr, s_.state, code_path_);
  s_.state.labels = s_.task->labels();
  s_.state.version = FINETUNE_VERSION;
  s_.state.totals.try_emplace(kStartedTotal, double(date_now()));
  s_.state.code_path = code_path_;
  s_.state.loss = named_loss(options);
  finetune::create_directories(s_.directory->checkpoints());
  s_.log =
      std::make_unique<RunLog>(*s_.directory, found_ ? s_.state.step : -1, evaluated_step(s_.state),
                               options.log_every, options.tensorboard);
  s_.startup_seconds = seconds_since_start() - began_;
}

void Preparation::run() {
  check_options();
  look_at_output();
  if (s_.finished) {
    return agree_on_errors(comm_, [&] {
      if (!s_.leads()) return;
      open_console(s_.options.quiet);
      compare_finished();
    });
  }
  make_groups(s_);
  choose_machine();
  const int own_threads = threads();
  read();
  resolve_options();
  share_samples();
  try {
    load();
    set_threads(own_threads);
    reserve_buffers(s_, facts_.evaluation);
    s_.step = std::make_unique<TrainingStep>(*s_.engine, *s_.objective, s_.groups->data(),
                                             step_options(s_.options, s_.engine->config()),
                                             *s_.options.batch_size, stage_plan(s_));
    continue_run();
  } catch (const OutOfDeviceMemory&) {
    throw s_.too_little_memory();
  }
  agree_on_errors(comm_, [&] {
    if (s_.leads()) open_files();
  });
}

}  // namespace

std::unique_ptr<Session> prepare_session(const TrainOptions& options, Communicator& comm,
                                         const SignalGuard& signals, SharedInputs* shared) {
  auto session = std::make_unique<Session>(comm);
  Preparation(*session, options, signals, shared).run();
  return session;
}

}  // namespace finetune

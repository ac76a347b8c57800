// Prepares a training run step by step; each step returns what the next ones need.
#include "train/prepare/preparation.h"

#include <algorithm>
#include <utility>

#include "comm/agreement.h"
#include "comm/placement.h"
#include "core/clock.h"
#include "core/files/files.h"
#include "core/log.h"
#include "core/process_stats.h"
#include "core/threads/parallel.h"
#include "distributed/rank0_values.h"
#include "engine/model_outputs.h"
#include "engine/pretrained.h"
#include "tasks/model_files.h"
#include "tasks/registry.h"
#include "train/checkpoint/checkpoint_transfer.h"
#include "train/layout/stages.h"
#include "train/options/config_file.h"
#include "train/options/option_values.h"
#include "train/options/option_words.h"
#include "train/prepare/budget.h"
#include "train/prepare/learner.h"
#include "train/prepare/reading.h"
#include "train/prepare/resolving.h"
#include "train/quick/head_fit.h"
#include "train/quick/quick_start.h"
#include "train/recipe/recipe.h"
#include "train/resume.h"
#include "train/run/junit.h"
#include "train/run/process_check.h"
#include "train/run/run_setup.h"
#include "weights/weights.h"

namespace finetune {
namespace {

// Checks that the options are valid and equal on all processes. Returns --time-limit in seconds.
double check_options(Communicator& world, const TrainOptions& options) {
  double time_limit = 0;
  agree_on_errors(world, [&] {
    validate(options);
    require_quick_options(options);
    if (const std::string& limit = options.time_limit; !limit.empty())
      time_limit = parse_duration(limit, "--time-limit");
    world.set_timeout(comm_timeout_seconds(options));
    world.set_patient(false);
    world.set_remedy("--resume continues from the newest whole checkpoint");
    if (options.threads) set_threads(int(*options.threads));  // files are read with them
  });
  require_equal_processes(world, options);
  return time_limit;
}

// With --resume, completes `options` from the checkpoint or the finished run.
Output look_at_output(Communicator& world, TrainOptions& options) {
  Output out;
  agree_on_errors(world, [&] {
    if (world.rank() != 0) return;
    check_output(options.output, output_mode(options));
    if (!options.junit.empty()) check_junit_output(options.junit, options.output, is_name_of_run);
    if (!options.resume || output_state(options.output) != OutputState::run) return;
    out.directory = std::make_unique<RunDirectory>(options.output, OutputMode::resume);
    if ((out.finished = has_ended(options.output))) {
      out.assertions = finished_assertions(*out.directory, options);
      return;
    }
    out.found = checkpoint_to_continue(*out.directory);
    if (out.found) out.adopted = continue_from(*out.found, options);
  });
  world.broadcast(&out.finished, sizeof out.finished, 0);
  if (out.finished) return out;
  options = options_from_text(broadcast_from_rank0(world, options_to_text(options)));
  out.label_order = names_from_text(broadcast_from_rank0(
      world, names_to_text(out.found ? out.found->state.labels : std::vector<std::string>())));
  return out;
}

// The training samples of this process. `owner` keeps the memory that `arrays` views.
struct TrainingSamples {
  TrainingArrays arrays;
  std::shared_ptr<void> owner;
};

// The processes of a host share one copy.
TrainingSamples share_samples(const Context& context, const std::shared_ptr<Task>& task) {
  TrainingSamples out;
  if (context.reads()) out.arrays = task->training_arrays();
  out.owner = share_with_host(context.world, context.reads() ? &out.arrays : nullptr, out.arrays);
  if (!out.owner) out.owner = task;
  return out;
}

// The task keeps its own samples where a process has its host for itself.
void release_samples(const Context& context, const TrainingSamples& shared, Task* task) {
  const bool has_copy = task && shared.owner.get() != task;
  if (has_copy && context.reads() && !context.keeps_inputs) task->release_training_arrays();
}

// The state that the run begins in: the checkpoint's, from `step` on, or an empty one if `step` is
// -1. Loads the checkpoint's weights and moments.
CheckpointState first_state(const Machine& machine, const Inputs& inputs, const Learner& learner,
                            Output& output, int64_t step) {
  CheckpointState state;
  if (step < 0) return state;
  machine.world.note("reading the checkpoint", -1);
  agree_on_errors(machine.world, [&] {
    if (!output.found) return;
    state = std::move(output.found->state);
    inputs.keep_sums(state);  // reports changed data now, and not after hours of training
  });
  state.step = step;
  load_checkpoint(machine, learner, output.found ? output.found->file.path : fs::path(),
                  WithMoments::yes, true);
  return state;
}

// Rank 0: opens console and log. The config is the first file: with it the directory is a run's,
// which --resume accepts whatever happens next.
void open_run_files(const RunDirectory& directory, const TrainOptions& options,
                    const std::string& config) {
  write_file(directory.config(), config);
  open_console(options.quiet);
  enable_progress(!options.no_progress);
  open_log_file(directory.log());
}

// Rank 0: what every checkpoint of the run says about it.
void complete_state(const Machine& machine, const TrainOptions& options, const Task& task,
                    CheckpointState& state) {
  state.labels = task.labels();
  state.version = FINETUNE_VERSION;
  state.totals.try_emplace(kStartedTotal, double(date_now()));
  state.code_path = machine.code_path;
  state.loss = named_loss(options);
}

// The schedule and the largest micro-batches. Collective.
void plan_steps(Communicator& world, Settings& settings, const SampleView& training) {
  settings.schedule = make_schedule(settings.options, training.size());
  agree_on_errors(world, [&] { plan_micro_batches(settings, training); });
}

// Fits the head to the features of the training samples. `task`: null but on rank 0. Collective.
HeadFit fit_first_head(const Context& context, const Machine& machine, const Settings& settings,
                       const TrainingArrays& arrays, const Task* task, const WeightSource* encoder,
                       Pooling pooling) {
  if (context.leads()) {
    open_console(settings.options.quiet);
    enable_progress(!settings.options.no_progress);
  }
  const bool has_names = context.leads() && !settings.options.no_label_names;
  const SampleView names = has_names ? task->label_names() : SampleView();
  return fit_head(machine, settings, arrays, names, encoder, pooling, [&] {
    const StopRequest request = context.signals.request();
    if (request == StopRequest::none) return;
    throw Error(exit_code_of(request),
                "stopped by a signal before the head was fitted; the same command begins again");
  });
}

// With few rows of each label `auto` becomes `quick`. Returns a line for the log. Collective.
std::string choose_level(const Context& context, const Reading& reading, const Output& output,
                         TrainOptions& options) {
  std::string line;
  int64_t is_quick = 0;
  agree_on_errors(context.world, [&] {
    if (!context.leads() || output.found) return;
    const Task& task = *reading.inputs.task;
    if (!takes_quick(options, task, reading.model.files.config)) return;
    is_quick = 1;
    line = line_of_quick(task.train_set().samples.size(), task.head().outputs);
  });
  context.world.broadcast(&is_quick, sizeof is_quick, 0);
  if (is_quick) options.recipe = kQuickWord;
  return line;
}

std::unique_ptr<TrainingRun> prepare_training(const Context& context, Settings settings,
                                              Output output, double began) {
  Communicator& world = context.world;
  ChosenMachine chosen = choose_machine(world, settings.options, output);
  Machine& machine = chosen.machine;
  const int own_threads = threads();
  Reading reading = read_data_and_model(context, chosen, settings.options, output);
  const bool pools_already = pooling_of(reading.model.files.config) == Pooling::mean;
  const std::string level = choose_level(context, reading, output, settings.options);
  TrainOptions unresolved = settings.options;
  Resolved resolved = resolve_options(machine, *chosen.backend, reading, output, settings);
  const TrainOptions& options = settings.options;
  const int64_t first_step = resolved.step;

  TrainingSamples samples = share_samples(context, reading.inputs.task);
  const SampleView& training = samples.arrays.samples;
  settings.head = samples.arrays.head;
  plan_steps(world, settings, training);
  std::string choice;
  const bool has_budget = settings.ends_by > 0;
  if (has_budget) keep_budget(settings);
  if (has_budget && first_step < 0 && is_quick(options)) {
    choice = "--time-budget: --recipe quick is as short as a run can be; nothing is cut";
  } else if (has_budget && first_step < 0) {
    set_threads(own_threads);
    choice = fit_to_budget(context, machine, reading, samples.arrays, settings, unresolved);
    settings.options = unresolved;
    resolved = resolve_options(machine, *chosen.backend, reading, output, settings);
    plan_steps(world, settings, training);
  }
  release_samples(context, samples, reading.inputs.task.get());
  std::vector<std::string> remarks = std::move(chosen.remarks);
  remarks.push_back(level);
  remarks.insert(remarks.end(), resolved.remarks.begin(), resolved.remarks.end());
  remarks.push_back(choice);

  Learner learner;
  learner.samples = samples.owner;
  learner.objective = make_objective(samples.arrays);
  PretrainedReport loaded;
  CheckpointState state;
  std::unique_ptr<WeightSource>& source = reading.model.source;
  std::optional<HeadFit> fit;
  const SampleSet* eval = context.leads() ? reading.inputs.task->eval_set() : nullptr;
  try {
    auto fitted = weights_to_start_with(settings, source.get(), nullptr);
    check_weights_and_disk(machine, settings, samples.arrays, fitted ? fitted.get() : source.get());
    // With --folds again after a stop: checkpoints have no answers out of fold.
    if (fits_head(options) && (first_step < 0 || options.folds)) {
      set_threads(own_threads);
      fit =
          fit_first_head(context, machine, settings, samples.arrays, reading.inputs.task.get(),
                         source.get(), pools_already ? Pooling::mean : pooling_of(settings.config));
      fitted = weights_to_start_with(settings, source.get(), &fit->head);
    }
    loaded = load_weights(machine, settings, samples.arrays, fitted ? fitted.get() : source.get(),
                          std::move(chosen.backend), learner);
    if (is_quick(options) && source) {
      loaded.lines = {concat("weights: ", source->path().string(), ", frozen")};
    }
    if (fit) loaded.lines.push_back(fit->line);
    if (context.leads()) {
      start_sums(context, reading.model, reading.inputs);
    } else {
      reading.inputs.task.reset();
    }
    source.reset();  // its mapping is as large as the weights
    set_threads(own_threads);
    reserve_buffers(machine, settings, learner);
    learner.step =
        std::make_unique<TrainingStep>(*learner.engine, *learner.objective, machine.groups->data(),
                                       step_options(options, settings.config), *options.batch_size,
                                       stage_plan(machine, settings, learner));
    state = first_state(machine, reading.inputs, learner, output, first_step);
    if (fit) learner.out_of_fold = std::move(fit->out_of_fold);
    if (fit && is_quick(options) && first_step < 0) {
      take_fit(*fit, training.size(), state);
      learner.has_new_fit = true;
    }
  } catch (const OutOfDeviceMemory&) {
    throw too_little_memory(machine, settings, learner, eval);
  }

  std::unique_ptr<Books> books;
  std::unique_ptr<Inputs> inputs;
  agree_on_errors(world, [&] {
    if (!context.leads()) return;
    inputs = std::make_unique<Inputs>(std::move(reading.inputs));
    books = std::make_unique<Books>();
    books->assertions = std::move(reading.assertions);
    books->directory = output.directory
                           ? std::move(output.directory)
                           : std::make_unique<RunDirectory>(options.output, output_mode(options));
    const RunDirectory& directory = *books->directory;
    state.options =
        write_config(config_items(with_absolute_paths(options)), config_marker(FINETUNE_VERSION));
    open_run_files(directory, options, state.options);
    remarks.push_back(loaded.warning);
    if (!is_quick(options) && pools_already) {
      remarks.push_back(
          "the model is of --recipe quick: its last layer, which pools, is kept and trained as the "
          "others are");
    }
    if (inputs->task->keeps_head() && has_ngrams(reading.model.files.directory.directory)) {
      remarks.push_back(
          is_evaluated(options) && mixes_with_ngrams(options)
              ? "the model's n-grams are not kept: new ones are fitted to these rows "
                "alone; give the earlier rows too"
              : "the model's n-grams are not kept, and none are fitted to these rows");
    }
    const SampleSet* measured = inputs->task->eval_set();
    remarks.push_back(advice_on_folds(options, measured ? measured->samples.size() : 0));
    const bool resumed = output.found.has_value();  // then the weights are the checkpoint's
    describe_run(machine, settings, *inputs, learner,
                 resumed ? std::vector<std::string>() : loaded.lines, remarks);
    write_layout(directory.layout(), machine, settings);
    if (options.resume) {
      describe_continuation(resumed ? &output.found->file.path : nullptr, state, machine.code_path);
    }
    complete_state(machine, options, *inputs->task, state);
    finetune::create_directories(directory.checkpoints());
    books->log =
        std::make_unique<RunLog>(directory, resumed ? state.step : -1, evaluated_step(state),
                                 options.log_every, options.tensorboard);
    if (learner.has_new_fit) {
      books->log->append_step(NamedNumbers{
          {"step", 1}, {"epoch", 1}, {"loss", fit->loss}, {"lr", 0}, {"grad_norm", 0}});
    }
    books->startup_seconds = seconds_since_start() - began;
    if (learner.has_new_fit) books->startup_seconds -= fit->seconds;  // of training, there
  });
  return std::unique_ptr<TrainingRun>(new TrainingRun{std::move(machine), std::move(settings),
                                                      std::move(inputs), std::move(learner),
                                                      std::move(books), std::move(state)});
}

}  // namespace

PreparedRun prepare_run(const TrainOptions& given, Communicator& world, const SignalGuard& signals,
                        SharedInputs* shared) {
  SharedInputs own;
  const Context context{world, signals, shared ? *shared : own, shared != nullptr};
  const double began = shared ? seconds_since_start() : 0;
  Settings settings;
  settings.given = given;
  settings.options = with_fixed_recipe(given);
  settings.time_limit = check_options(world, settings.options);
  settings.began = began;
  Output output = look_at_output(world, settings.options);
  if (!output.finished) {
    if (const std::string& budget = settings.options.time_budget; !budget.empty()) {
      settings.ends_by = began + parse_duration(budget, "--time-budget");
    }
    return prepare_training(context, std::move(settings), std::move(output), began);
  }
  agree_on_errors(world, [&] {
    if (!context.leads()) return;
    open_console(settings.options.quiet);
    compare_finished(context, settings.options, *output.directory);
  });
  return FinishedRun{given, std::move(output.directory), std::move(output.assertions)};
}

}  // namespace finetune

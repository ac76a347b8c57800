// The training loop: steps, logging, evaluation, checkpoints, stopping.
#include "train/trainer.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>

#include "comm/agreement.h"
#include "core/clock.h"
#include "core/files/files.h"
#include "core/log.h"
#include "core/process_stats.h"
#include "core/text/counted.h"
#include "data/plan.h"
#include "tasks/repeated_texts.h"
#include "train/checkpoint/checkpoint_store.h"
#include "train/checkpoint/checkpoint_transfer.h"
#include "train/finish.h"
#include "train/layout/stages.h"
#include "train/prepare/preparation.h"
#include "train/record/progress.h"
#include "train/signals.h"

namespace finetune {
namespace {

constexpr int kBudgetSpent = 1;  // --time-budget is spent; used like an exit code

// The loop from a prepared run to its end, which every process runs. Only rank 0 knows metrics,
// clock and files: it sends its decisions to the others at fixed places (Verdict). Stop requests
// are sent with the step's sums. So all processes take the same branches.
class Trainer {
 public:
  Trainer(TrainingRun& run, const SignalGuard& signals, const RunInTurn* turn)
      : run_(run), signals_(signals), turn_(turn) {}

  TrainOutcome run();

 private:
  int64_t total_steps() const { return settings_.schedule.total_steps; }
  bool is_last(int64_t done) const { return done == total_steps(); }
  double epochs_done() const { return epochs_at(state_.step); }
  double epochs_at(int64_t done) const { return double(done) / double(per_epoch_); }
  bool due(int64_t done, std::optional<int64_t> every) const {
    return is_last(done) || done % every.value_or(per_epoch_) == 0;
  }
  double& total(const char* name) { return state_.totals[name]; }
  double runtime() const { return runtime_before_ + seconds_now() - started_; }

  // Rank 0's decisions after an evaluation, or when the loop begins.
  struct Verdict {
    int stop = 0;  // exit code of a requested stop; 0: none
    int stop_early = 0;
    int save = 0;
    int evaluate = 0;
  };
  Verdict agree(Verdict verdict) {
    world_.broadcast(&verdict, sizeof verdict, 0);
    return verdict;
  }
  bool has_stopped_improving() const {
    return options_.early_stopping > 0 &&
           state_.evaluations_without_improvement >= options_.early_stopping;
  }
  int stop_request() const { return int(stop_requested()); }
  int request_of_step() const;

  // A step that has begun and whose result is not known yet.
  struct Begun {
    int64_t done;  // steps, with it
    int64_t samples;
    double learning_rate;
    double start;
  };

  // These return the exit code of a stop that all processes agreed on; 0: none.
  int step();
  int evaluate();
  int end_in_time();
  // Waits until at most `left` steps are in flight. Call with 0 before reading the run's state.
  void finish_steps(int64_t left);
  // After an error: waits for every step in flight, and ignores further errors.
  void finish_steps_if_possible() noexcept;
  void show(int64_t done, double loss);
  Verdict judge(const Metrics& metrics, std::unique_ptr<Evaluator> evaluation);
  Verdict evaluate_on_rank_0();
  Verdict beginning() const;
  void save();
  ExitCode stop_requested() const;
  bool is_pause(int64_t done) const;
  TrainOutcome pause();
  TrainOutcome finish();
  TrainOutcome stop(int code);

  TrainingRun& run_;
  const SignalGuard& signals_;
  const RunInTurn* turn_;  // null: the only run of this process
  Communicator& world_ = run_.machine.world;
  const Settings& settings_ = run_.settings;
  const TrainOptions& options_ = settings_.options;
  const Learner& learner_ = run_.learner;
  const Books* books_ = run_.books.get();  // null except on rank 0
  CheckpointState& state_ = run_.state;
  const int64_t count_ = learner_.objective->samples().size();
  const int64_t per_epoch_ = steps_per_epoch(count_, *options_.batch_size);
  int64_t order_epoch_ = -1;
  std::vector<uint32_t> order_;
  double started_ = seconds_now();
  double runtime_before_ = 0;
  int64_t first_step_ = state_.step;  // of this process
  int64_t saved_step_ = -1, measured_step_ = -1;
  EvaluationRows rows_ = rows_after(state_, options_.best_metric);
  bool stop_early_ = false;
  std::deque<Begun> begun_;
  int wanted_ = 0;  // exit code of the stop that all processes agreed on
  double last_finish_ = 0;
  std::unique_ptr<Evaluator> best_evaluation_;  // of state_.best_step, if this process evaluated it
  Metrics best_metrics_;
};

int Trainer::step() {
  int64_t epoch = state_.step / per_epoch_;
  if (epoch != order_epoch_) {
    order_ = epoch_order(count_, options_.seed, epoch, !options_.no_shuffle);
    order_epoch_ = epoch;
  }
  IndexRange range = batch_range(count_, *options_.batch_size, state_.step % per_epoch_);
  const double learning_rate = settings_.schedule.at(state_.step);
  const Begun begun{state_.step + 1, range.size(), learning_rate, seconds_now()};
  try {
    const auto rows = std::span(order_).subspan(size_t(range.begin), size_t(range.size()));
    learner_.step->begin(state_.step, rows, learning_rate, [this] { return request_of_step(); });
  } catch (...) {
    finish_steps_if_possible();
    throw;
  }
  begun_.push_back(begun);
  state_.step += 1;
  state_.epoch = state_.step / per_epoch_;
  state_.step_in_epoch = state_.step % per_epoch_;
  finish_steps(learner_.step->most_under_way());
  return wanted_;
}

void Trainer::finish_steps(int64_t left) {
  while (int64_t(begun_.size()) > left) {
    const Begun step = begun_.front();
    begun_.pop_front();
    const StepResult result = learner_.step->finish();
    wanted_ = std::max(wanted_, result.stop_request);
    if (!result.finite) {  // equal on all processes, whose devices must be idle
      for (; !begun_.empty(); begun_.pop_front()) learner_.step->finish();
      agree_on_errors(world_, [&] {
        throw diverged(step.done,
                       concat("loss ", result.loss, ", gradient norm ", result.gradient_norm));
      });
    }
    // If steps overlap, a step's time counts from the end of the step before.
    const double start = std::max(step.start, last_finish_);
    last_finish_ = seconds_now();
    const double seconds = last_finish_ - start;
    total("loss") += result.loss;
    total("seconds") += seconds;
    total("tokens") += double(result.tokens);
    total("samples") += double(step.samples);
    if (!books_) continue;
    if (step.done % options_.log_every == 0 || is_last(step.done)) {
      books_->log->append_step({step.done, epochs_at(step.done), result.loss, step.learning_rate,
                                result.gradient_norm, result.tokens, step.samples, seconds});
    }
    show(step.done, result.loss);
  }
}

void Trainer::finish_steps_if_possible() noexcept {
  if (world_.size() > 1) return;  // the steps may wait for processes that failed, too
  try {
    finish_steps(0);
  } catch (...) {  // only the first error counts
  }
}

void Trainer::show(int64_t done, double loss) {
  const double seconds = std::max(1e-9, total("seconds"));
  const double left = total("seconds") / double(done) * double(total_steps() - done);
  const double samples = total("samples") / seconds, tokens = total("tokens") / seconds;
  const RunProgress progress{done, total_steps(), epochs_at(done), loss, samples, tokens, left};
  if (turn_ && turn_->progress) turn_->progress(progress);
  show_progress(progress_parts(progress), is_last(done));
}

Trainer::Verdict Trainer::evaluate_on_rank_0() {
  Metrics metrics;
  Verdict verdict;
  auto evaluation = finetune::evaluate(run_, metrics, [&](double share) {
    if (share > 0) show_progress(concat("evaluating  ", format_fixed(100 * share, 0), " %"));
    return stop_requested() == ExitCode::done;
  });
  clear_progress();
  if (!evaluation) return {.stop = stop_request()};
  const Metrics shown = without_unseen(metrics, options_.best_metric);
  NamedNumbers entry = {{"step", double(state_.step)}, {"epoch", epochs_done()}};
  entry.insert(entry.end(), shown.begin(), shown.end());
  books_->log->append_evaluation(entry);
  keep_evaluation(state_);
  if (state_.step > 0) verdict = judge(metrics, std::move(evaluation));
  const bool best = state_.best_step == state_.step;
  const EvaluationAt at{state_.step, epochs_done(), total("loss"), runtime(), best};
  for (auto& row : rows_.add(at, shown, console_columns())) log_line(row.whole, row.fitted);
  return verdict;
}

int Trainer::evaluate() {
  finish_steps(0);
  if (wanted_ != 0 && !is_last(state_.step)) return wanted_;  // --resume evaluates then
  Verdict verdict;
  if (books_) {
    verdict = evaluate_on_rank_0();
  } else {
    Metrics none;
    finetune::evaluate(run_, none, nullptr);
  }
  verdict = agree(verdict);
  if (verdict.stop != 0) return verdict.stop;
  saved_step_ = -1;  // the state has changed since
  measured_step_ = state_.step;
  stop_early_ = verdict.stop_early != 0;
  if (verdict.save) save();
  return 0;
}

Trainer::Verdict Trainer::judge(const Metrics& metrics, std::unique_ptr<Evaluator> evaluation) {
  double value = value_or_nan(metrics, options_.best_metric);
  bool larger = run_.inputs->task->larger_is_better(options_.best_metric);
  bool better = state_.best_step < 0 || !std::isfinite(state_.best_value) ||
                (larger ? value > state_.best_value : value < state_.best_value);
  if (better) {
    state_.best_value = value;
    state_.best_step = state_.step;
    state_.evaluations_without_improvement = 0;
    best_metrics_ = metrics;
    best_evaluation_ = std::move(evaluation);
    return {.save = !is_last(state_.step)};
  }
  state_.evaluations_without_improvement += 1;
  return {.stop_early = has_stopped_improving()};
}

void Trainer::save() {
  finish_steps(0);
  if (saved_step_ == state_.step) return;
  fs::path path;
  if (books_) {
    clear_progress();
    total("runtime") = runtime();
    books_->log->sync();
    run_.inputs->keep_sums(state_);
    path = checkpoint_path(books_->directory->own_checkpoints(), state_.step);
  }
  save_checkpoint(run_.machine, learner_, state_, path);
  saved_step_ = state_.step;
  if (!books_) return;
  prune_checkpoints(books_->directory->own_checkpoints(), state_.step,
                    options_.keep_checkpoints.value_or(kKeptDuringRun), state_.best_step);
}

ExitCode Trainer::stop_requested() const {
  if (StopRequest request = signals_.request(); request != StopRequest::none) {
    return exit_code_of(request);
  }
  bool late = settings_.time_limit > 0 && seconds_since_start() > settings_.time_limit;
  return late ? ExitCode::time_limit : ExitCode::done;
}

TrainOutcome Trainer::stop(int wanted) {
  save();
  TrainOutcome outcome{.code = ExitCode(wanted)};
  if (!books_) return outcome;
  log(reason_of_stop(outcome.code), ": stopped after step ", state_.step, " of ", total_steps(),
      ", checkpoint ", checkpoint_path(books_->directory->checkpoints(), state_.step).string(),
      "; continue with --resume");
  return outcome;
}

int Trainer::request_of_step() const {
  const bool late = settings_.last_step_by > 0 && seconds_since_start() > settings_.last_step_by;
  const int stop = stop_request();
  return stop == 0 && late ? kBudgetSpent : stop;
}

// Ends a run that would exceed --time-budget after the steps it has done.
int Trainer::end_in_time() {
  finish_steps(0);
  wanted_ = 0;
  if (books_) {
    log("--time-budget ", options_.time_budget, ": training ends after step ", state_.step, " of ",
        total_steps(), ", to keep the time");
  }
  return settings_.has_eval && measured_step_ != state_.step ? evaluate() : 0;
}

// Pauses only at an evaluation that a run without a pause has too, so the result is the same.
bool Trainer::is_pause(int64_t done) const {
  const double share = turn_ ? turn_->pause_share : 0;
  if (share == 0 || is_last(done) || stop_early_) return false;
  const int64_t interval = options_.eval_every.value_or(per_epoch_);
  return done >= evaluation_at_share(share, total_steps(), interval);
}

TrainOutcome Trainer::pause() {
  save();
  if (books_) log("paused after step ", state_.step, " of ", total_steps());
  return {.paused = true};
}

Trainer::Verdict Trainer::beginning() const {
  Verdict verdict;
  verdict.stop = stop_request();
  verdict.stop_early = has_stopped_improving();
  const bool is_fit = fits_head(options_) && !is_quick(options_);  // see frozen_metrics()
  verdict.evaluate = settings_.has_eval && evaluated_step(state_) != state_.step &&
                     (state_.step == 0 ? is_fit : due(state_.step, options_.eval_every));
  return verdict;
}

TrainOutcome Trainer::run() {
  runtime_before_ = total("runtime");
  const Verdict verdict = agree(beginning());
  stop_early_ = verdict.stop_early != 0;
  int code = verdict.stop;
  if (state_.step > 0 && !learner_.has_new_fit) saved_step_ = state_.step;
  if (code == 0 && verdict.evaluate) code = evaluate();
  if (code == 0 && state_.step > 0 && is_pause(state_.step)) return pause();
  while (code == 0 && state_.step < total_steps() && !stop_early_) {
    if (world_.size() == 1 && (code = stop_request()) != 0) break;
    code = step();
    // After the last step the run is over: its evaluation begins even if a stop was requested, and
    // only a request during that evaluation ends it.
    const bool last = is_last(state_.step);
    if (code != 0 && !last) break;
    if (settings_.has_eval && due(state_.step, options_.eval_every)) {
      code = evaluate();
      if (code == 0 && is_pause(state_.step)) return pause();
    } else if (last) {
      code = 0;
    }
    if (code == 0 && !last && due(state_.step, options_.save_every)) {
      save();
      code = wanted_;  // from a step that was still in flight
    }
  }
  if (code == kBudgetSpent) code = end_in_time();
  if (code != 0) return stop(code);
  if (stop_early_ && books_) {
    log("stopped early at step ", state_.step, ": ", options_.best_metric, " has not improved for ",
        counted(options_.early_stopping, "evaluation"));
  }
  return finish();
}

TrainOutcome Trainer::finish() {
  finish_steps(0);
  learner_.step->settle();
  if (!weights_are_finite(run_.machine, learner_)) {  // no loss was computed after the last update
    agree_on_errors(world_, [&] { throw diverged(state_.step, "the weights are not finite"); });
  }
  save();
  Metrics metrics = totals_of(run_, runtime(), epochs_done());
  add_layout_metrics(run_.machine, settings_, learner_, state_.step - first_step_, metrics);
  return finish_run(run_, metrics, best_metrics_, best_evaluation_.get());
}

TrainOutcome train(TrainingRun& run, const SignalGuard& signals, const RunInTurn* turn) {
  try {
    return Trainer(run, signals, turn).run();
  } catch (const OutOfDeviceMemory&) {
    const SampleSet* eval = run.inputs ? run.inputs->task->eval_set() : nullptr;
    throw too_little_memory(run.machine, run.settings, run.learner, eval);
  }
}

}  // namespace

TrainOutcome run_training(const TrainOptions& options, Communicator& comm, RunInTurn* turn) {
  // From here on a signal ends the run with a checkpoint, even while data is being read.
  const SignalGuard& signals = signals_of_runs();
  PreparedRun prepared = prepare_run(options, comm, signals, turn ? &turn->inputs : nullptr);
  if (turn) turn->began = true;
  TrainOutcome outcome;
  if (const auto* run = std::get_if<std::unique_ptr<TrainingRun>>(&prepared)) {
    outcome = train(**run, signals, turn);
  } else if (const auto& finished = std::get<FinishedRun>(prepared); finished.directory) {
    outcome = finished_outcome(finished);
  }
  comm.broadcast(&outcome.code, sizeof outcome.code, 0);
  return outcome;
}

}  // namespace finetune

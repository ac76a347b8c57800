#include "train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "core/log.h"
#include "core/parallel.h"
#include "data/plan.h"
#include "train/checkpoint_store.h"
#include "train/finish.h"
#include "train/process_stats.h"
#include "train/session.h"
#include "train/signals.h"
#include "train/tree_sum.h"

namespace finetune {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string clock_time(double seconds) {
  int64_t s = int64_t(std::max(0.0, seconds) + 0.5);
  auto two = [](int64_t n) { return concat(n < 10 ? "0" : "", n); };
  if (s >= 3600) return concat(s / 3600, ":", two(s % 3600 / 60), ":", two(s % 60));
  return concat(s / 60, ":", two(s % 60));
}

std::string metric_list(const Metrics& metrics) {
  std::string out;
  for (const auto& [name, value] : metrics) out += concat("  ", name, " ", format_fixed(value, 4));
  return out;
}

Error diverged(int64_t step, const std::string& what) {
  return Error(ExitCode::diverged, concat("diverged at step ", step, ": ", what,
                                          "; a smaller --lr or a longer --warmup-ratio may help"));
}

// The loop, from a prepared session to its end.
class Trainer {
 public:
  Trainer(Session& session, const SignalGuard& signals)
      : s_(session),
        signals_(signals),
        state_(session.state),
        count_(session.objective->samples().size()),
        per_epoch_(steps_per_epoch(count_, session.options.batch_size)) {}

  TrainOutcome run();

 private:
  int64_t total_steps() const { return s_.schedule.total_steps; }
  bool is_last(int64_t done) const { return done == total_steps(); }
  bool epoch_ends(int64_t done) const { return done % per_epoch_ == 0; }
  double epochs_done() const { return double(state_.step) / double(per_epoch_); }
  bool due(int64_t done, std::optional<int64_t> every) const {
    return is_last(done) || (every ? done % *every == 0 : epoch_ends(done));
  }
  double& total(const char* name) { return state_.totals[name]; }

  void step();
  void log_step(const StepResult& result, double learning_rate, double seconds);
  void show(double loss);
  bool evaluate();
  void note_result(const Metrics& metrics, std::unique_ptr<Evaluation> evaluation);
  void save();
  ExitCode stop_requested() const;
  TrainOutcome finish();
  TrainOutcome stop(ExitCode code);

  Session& s_;
  const SignalGuard& signals_;
  CheckpointState& state_;
  int64_t count_;
  int64_t per_epoch_;
  int64_t order_epoch_ = -1;
  std::vector<uint32_t> order_;
  Clock::time_point started_ = Clock::now();
  double runtime_before_ = 0;
  int64_t saved_step_ = -1;
  bool stop_early_ = false;
  std::unique_ptr<Evaluation> best_evaluation_;  // of state_.best_step, if it was in this process
  Metrics best_metrics_;
};

void Trainer::step() {
  int64_t epoch = state_.step / per_epoch_;
  if (epoch != order_epoch_) {
    order_ = epoch_order(count_, s_.options.seed, epoch, !s_.options.no_shuffle);
    order_epoch_ = epoch;
  }
  IndexRange range = batch_range(count_, s_.options.batch_size, state_.step % per_epoch_);
  auto start = Clock::now();
  double learning_rate = s_.schedule.at(state_.step);
  StepResult result = s_.step->run(
      state_.step, std::span(order_).subspan(size_t(range.begin), size_t(range.size())),
      learning_rate);
  if (!result.finite) {
    throw diverged(state_.step + 1,
                   concat("loss ", result.loss, ", gradient norm ", result.gradient_norm));
  }
  double seconds = seconds_since(start);
  total("loss") += result.loss;
  total("seconds") += seconds;
  total("tokens") += double(result.tokens);
  total("samples") += double(range.size());
  state_.step += 1;
  state_.epoch = state_.step / per_epoch_;
  state_.step_in_epoch = state_.step % per_epoch_;
  if (state_.step % s_.options.log_every == 0 || is_last(state_.step)) {
    log_step(result, learning_rate, seconds);
  }
  show(result.loss);
}

void Trainer::log_step(const StepResult& result, double learning_rate, double seconds) {
  IndexRange range = batch_range(count_, s_.options.batch_size, (state_.step - 1) % per_epoch_);
  s_.metrics_log->append({{"step", double(state_.step)},
                          {"epoch", epochs_done()},
                          {"loss", result.loss},
                          {"lr", learning_rate},
                          {"grad_norm", result.gradient_norm},
                          {"tokens_per_second", double(result.tokens) / seconds},
                          {"samples_per_second", double(range.size()) / seconds}});
}

void Trainer::show(double loss) {
  double rate = total("samples") / std::max(1e-9, total("seconds"));
  double left = total("seconds") / double(state_.step) * double(total_steps() - state_.step);
  show_progress(
      concat("step ", state_.step, "/", total_steps(), "  epoch ", format_fixed(epochs_done(), 2),
             "  loss ", format_fixed(loss, 4), "  ", format_fixed(rate, 1), " samples/s  ",
             format_fixed(total("tokens") / std::max(1e-9, total("seconds")), 0),
             " tokens/s  remaining ", clock_time(left)),
      is_last(state_.step));
}

// False if a stop was requested before it was done.
bool Trainer::evaluate() {
  Metrics metrics;
  auto evaluation = s_.evaluate(metrics, [&](double share) {
    show_progress(concat("evaluating  ", format_fixed(100 * share, 0), " %"));
    return stop_requested() == ExitCode::done;
  });
  clear_progress();
  if (!evaluation) return false;
  NamedNumbers entry = {{"step", double(state_.step)}, {"epoch", epochs_done()}};
  entry.insert(entry.end(), metrics.begin(), metrics.end());
  s_.metrics_log->append(entry);
  log("evaluation at step ", state_.step, ":", metric_list(metrics));
  total("evaluated") = double(state_.step);
  saved_step_ = -1;  // the state is another one now
  note_result(metrics, std::move(evaluation));
  return true;
}

void Trainer::note_result(const Metrics& metrics, std::unique_ptr<Evaluation> evaluation) {
  double value = metrics.at(s_.best_metric);
  bool larger = s_.task->larger_is_better(s_.best_metric);
  bool better = state_.best_step < 0 || !std::isfinite(state_.best_value) ||
                (larger ? value > state_.best_value : value < state_.best_value);
  if (better) {
    state_.best_value = value;
    state_.best_step = state_.step;
    state_.evaluations_without_improvement = 0;
    best_metrics_ = metrics;
    best_evaluation_ = std::move(evaluation);
    if (!is_last(state_.step)) save();
    return;
  }
  state_.evaluations_without_improvement += 1;
  if (s_.options.early_stopping > 0 &&
      state_.evaluations_without_improvement >= s_.options.early_stopping) {
    stop_early_ = true;
  }
}

void Trainer::save() {
  if (saved_step_ == state_.step) return;
  clear_progress();
  total("runtime") = runtime_before_ + seconds_since(started_);
  s_.metrics_log->sync();
  s_.wait_for_fingerprints();
  write_checkpoint(checkpoint_path(s_.directory->checkpoints(), state_.step), state_,
                   s_.engine->table(), s_.arenas());
  prune_checkpoints(s_.directory->checkpoints(), state_.step, s_.options.keep_checkpoints,
                    state_.best_step);
  saved_step_ = state_.step;
}

ExitCode Trainer::stop_requested() const {
  if (StopRequest request = signals_.request(); request != StopRequest::none) {
    return exit_code_of(request);
  }
  bool late = s_.time_limit > 0 && seconds_since_start() > s_.time_limit;
  return late ? ExitCode::time_limit : ExitCode::done;
}

TrainOutcome Trainer::stop(ExitCode code) {
  save();
  const char* why = code == ExitCode::time_limit    ? "time limit reached"
                    : code == ExitCode::interrupted ? "interrupted"
                                                    : "asked to stop by a signal";
  log(why, ": stopped after step ", state_.step, " of ", total_steps(), ", checkpoint ",
      checkpoint_path(s_.directory->checkpoints(), state_.step).string(),
      "; continue with --resume");
  TrainOutcome outcome;
  outcome.code = code;
  return outcome;
}

TrainOutcome Trainer::run() {
  runtime_before_ = total("runtime");
  bool has_eval = s_.task->eval_set() != nullptr;
  stop_early_ = s_.options.early_stopping > 0 &&
                state_.evaluations_without_improvement >= s_.options.early_stopping;
  if (state_.step > 0) {
    saved_step_ = state_.step;
    if (has_eval && due(state_.step, s_.options.eval_every) &&
        evaluated_step(state_) != state_.step) {
      if (!evaluate()) return stop(stop_requested());
    }
  }
  while (state_.step < total_steps() && !stop_early_) {
    if (ExitCode code = stop_requested(); code != ExitCode::done) return stop(code);
    step();
    bool evaluation_due = has_eval && due(state_.step, s_.options.eval_every);
    if (evaluation_due && !evaluate()) return stop(stop_requested());
    if (!is_last(state_.step) && due(state_.step, s_.options.save_every)) save();
  }
  if (stop_early_) {
    log("stopped early at step ", state_.step, ": ", s_.best_metric, " has not improved for ",
        s_.options.early_stopping, " evaluations");
  }
  return finish();
}

TrainOutcome Trainer::finish() {
  std::vector<double> sums;  // the last update is one that no loss has seen
  double norm = gradient_norm(s_.engine->backend(),
                              vector(s_.engine->weights(), s_.engine->table().size()), {}, sums);
  if (!std::isfinite(norm)) throw diverged(state_.step, "the weights are not finite");
  save();
  Metrics metrics;
  double seconds = std::max(1e-9, total("seconds"));
  metrics["train_loss"] = total("loss") / double(std::max<int64_t>(1, state_.step));
  metrics["train_runtime"] = runtime_before_ + seconds_since(started_);
  metrics["train_steps"] = double(state_.step);
  metrics["train_epochs"] = epochs_done();
  metrics["train_samples_per_second"] = total("samples") / seconds;
  metrics["train_tokens_per_second"] = total("tokens") / seconds;
  metrics["startup_seconds"] = s_.startup_seconds;
  return finish_run(s_, metrics, best_metrics_, best_evaluation_.get());
}

}  // namespace

TrainOutcome run_training(const TrainOptions& options) {
  // From here on a signal ends with a checkpoint, while data are read too. Kept until the process
  // ends: a signal that comes after the last step must not make a finished run look failed.
  static const SignalGuard& signals = *new SignalGuard;
  std::unique_ptr<Session> session = prepare_session(options);
  if (session->finished) {
    log(session->directory->path().string(), ": the run is finished; nothing to resume");
    return finished_outcome(*session);
  }
  return Trainer(*session, signals).run();
}

}  // namespace finetune

// Fits the head of --recipe quick to the training rows and evaluates it, without a run.
#include "train/quick/frozen_baseline.h"

#include <sys/resource.h>

#include "core/clock.h"
#include "distributed/rank0_values.h"
#include "engine/model_outputs.h"
#include "inference/batch_dispatch.h"
#include "train/layout/stages.h"
#include "train/quick/head_fit.h"
#include "train/quick/quick_start.h"

namespace finetune {
namespace {

// Of this process and of those that it has waited for, such as the n-grams'.
double processor_seconds_now() {
  rusage children{};
  ::getrusage(RUSAGE_CHILDREN, &children);
  const auto seconds = [](const timeval& t) { return double(t.tv_sec) + 1e-6 * double(t.tv_usec); };
  return seconds_now(Clock::cpu) + seconds(children.ru_utime) + seconds(children.ru_stime);
}

TrainOptions quick_options(TrainOptions options) {
  options.recipe = "quick";
  options.task = "classification";
  options.device = "cpu";
  options.reinit_head = options.skip_bad_rows = options.ignore_unknown_labels = true;
  const bool mixes = !options.no_ngram_baseline && has_one_label(options);
  options.ngram_mix = mixes ? "yes" : "no";
  return options;
}

std::unique_ptr<Evaluator> evaluated(const Machine& machine, const Settings& settings,
                                     Engine& engine, Task& task) {
  BatchDispatcher dispatcher(engine, machine.world);
  std::unique_ptr<Evaluator> evaluator = task.start_evaluation();
  const int64_t tokens =
      evaluation_tokens(engine.backend(), settings.config, settings.micro_batch_tokens);
  dispatcher.evaluate(*evaluator, tokens, [](double) { return true; });
  dispatcher.done();
  return evaluator;
}

}  // namespace

FrozenBaseline measure_frozen_baseline(TrainOptions options, const DataFiles& files) {
  const double start = processor_seconds_now();
  const std::unique_ptr<Communicator> alone = make_solo_communicator();
  Settings settings;
  settings.options = quick_options(std::move(options));
  TrainOptions& o = settings.options;
  o.precision = agreed_precision(*alone, "cpu", o.precision);
  ModelFiles model = open_model(o.model);
  const std::unique_ptr<WeightSource> source = open_weights_of(model);
  settings.config = config_of_run(o, model.config, model.directory.directory);
  const std::unique_ptr<Task> task = read_task(o, files, model, *source);
  const TrainingArrays arrays = task->training_arrays();
  settings.head = arrays.head;
  settings.micro_batch_tokens = auto_micro_batch_tokens(settings.config, task->max_length(), 0);
  const Machine machine{
      *alone, make_groups(*alone, o), make_backend("cpu", 1, o.precision)->code_path(), {}};
  const HeadFit fit =
      fit_head(machine, settings, arrays, o.no_label_names ? SampleView() : task->label_names(),
               source.get(), pooling_of(settings.config), [] {});
  const auto engine = make_pooled_engine(machine, settings, source.get(), fit.head);
  const std::unique_ptr<Evaluator> evaluator = evaluated(machine, settings, *engine, *task);
  FrozenBaseline out;
  out.alone = evaluator->metrics();
  if (o.ngram_mix == "yes") {
    out.with_ngrams = out.alone;
    task->calibrate(*evaluator, out.with_ngrams);
  }
  out.processor_seconds = processor_seconds_now() - start;
  return out;
}

}  // namespace finetune

// Opens data, reads the task, makes the schedule and loads initial weights.
#include "train/run/run_setup.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <unordered_set>

#include "core/error.h"
#include "core/failure.h"
#include "core/files/files.h"
#include "core/files/output_directory.h"
#include "core/text/counted.h"
#include "core/text/text.h"
#include "data/plan.h"
#include "engine/model_outputs.h"
#include "engine/sinusoidal_positions.h"
#include "tasks/baseline.h"
#include "tasks/labels/label_names.h"
#include "tasks/registry.h"
#include "train/options/option_values.h"
#include "train/recipe/recipe.h"
#include "train/run/gates.h"

namespace finetune {

OutputMode output_mode(const TrainOptions& options) {
  if (options.resume) return OutputMode::resume;
  return options.overwrite ? OutputMode::overwrite : OutputMode::create;
}

namespace {

constexpr size_t kMostNamedLabels = 5, kMostNewLabels = 50;

// The count and the first labels: "5 labels: 'a', 'b', …"
std::string some_of(const std::vector<std::string>& labels, size_t most = kMostNamedLabels) {
  std::vector<std::string> quoted;
  for (const std::string& label : labels) quoted.push_back(in_quotes(label));
  return concat(counted(labels.size(), "label"), ": ", join_some(quoted, most));
}

// The entries of `labels` that are not in `others`, in order.
std::vector<std::string> lacking(const std::vector<std::string>& labels,
                                 const std::vector<std::string>& others) {
  const std::unordered_set<std::string_view> known(others.begin(), others.end());
  std::vector<std::string> out;
  std::copy_if(labels.begin(), labels.end(), std::back_inserter(out),
               [&](const std::string& label) { return !known.contains(label); });
  return out;
}

// The reason why the model's head cannot be extended.
const char* trained_for(const EncoderConfig& config) {
  const bool gives_numbers = config.problem_type == "regression" ||
                             (config.problem_type.empty() && config.labels.size() == 1);
  return gives_numbers ? "it was trained for numbers"
                       : "it was trained for another number of labels a row";
}

// The reason why the model's head is not kept.
std::string difference_of_heads(const std::vector<std::string>& head,
                                const std::vector<std::string>& data) {
  if (data.empty()) return concat("it has ", some_of(head), "; the data's are numbers");
  const std::vector<std::string> unknown = lacking(data, head), unused = lacking(head, data);
  if (unknown.empty()) {
    return "it knows the data's labels, but was trained for another number of labels a row";
  }
  if (head.empty()) return concat("it has none; the data has ", some_of(unknown));
  const auto like = likeness(unknown, head);
  return concat(
      "the data has ", some_of(unknown, kMostNewLabels), ", which it lacks",
      like ? concat(" (", *like, "; --normalize-labels joins them)") : "",
      unused.empty() ? "" : concat("; it has ", some_of(unused), ", which the data lacks"));
}

}  // namespace

std::vector<InputFile> DataFiles::all() const {
  std::vector<InputFile> files = train;
  files.insert(files.end(), eval.begin(), eval.end());
  return files;
}

namespace {

bool has_same_bytes(const fs::path& a, const fs::path& b) {
  std::error_code error;
  if (fs::file_size(a, error) != fs::file_size(b, error) || error) return false;
  constexpr size_t kBlock = 1 << 18;
  std::ifstream one(a, std::ios::binary), other(b, std::ios::binary);
  std::string x(kBlock, 0), y(kBlock, 0);
  while (one && other) {
    one.read(x.data(), kBlock);
    other.read(y.data(), kBlock);
    if (one.gcount() != other.gcount() ||
        x.compare(0, size_t(one.gcount()), y, 0, size_t(one.gcount())) != 0) {
      return false;
    }
  }
  return one.eof() && other.eof();
}

}  // namespace

std::vector<std::string> repeated_data(const DataFiles& data) {
  std::vector<std::string> lines;
  for (const InputFile& train : data.train) {
    for (const InputFile& eval : data.eval) {
      std::error_code error;
      const bool same = fs::equivalent(train.content, eval.content, error);
      if (!same && !has_same_bytes(train.content, eval.content)) continue;
      lines.push_back(concat(train.name.string(),
                             same ? " is training and evaluation data"
                                  : concat(" and ", eval.name.string(),
                                           " hold the same, one for training, one for evaluation"),
                             ": eval_* metrics tell nothing of new data; --eval-fraction holds out "
                             "some of the rows"));
    }
  }
  return lines;
}

DataFiles open_data(const TrainOptions& options, const std::function<void()>& check_stop) {
  // --max-train-samples may leave some files unread, but the run's fingerprint covers all of them.
  for (const fs::path& file : data_files(options)) require_readable(file);
  DataFiles data;
  for (const fs::path file : options.train) data.train.push_back(rereadable(file, check_stop));
  for (const fs::path file : options.eval) data.eval.push_back(rereadable(file, check_stop));
  return data;
}

std::unique_ptr<Task> read_task(const TrainOptions& options, const DataFiles& data,
                                const ModelFiles& model, const WeightSource& source,
                                std::vector<std::string> label_order) {
  TaskKind kind = options.task.empty() ? task_of_data(data.train[0]) : *task_named(options.task);
  require_options_of(kind, options);
  if (is_quick(options) && kind != TaskKind::classification) {
    throw usage_error("--recipe quick is for classification and regression, not for ",
                      traits_of(kind).title, "; use --recipe auto");
  }
  bool has_head = holds_head(model.config, source, traits_of(kind).head);
  TaskOptions of_task = task_options(options);
  of_task.train_files = data.train;
  of_task.eval_files = data.eval;
  of_task.label_order = std::move(label_order);
  const bool wants_head = has_head && !options.reinit_head && !is_quick(options);
  if (!has_head && (options.extend_head || options.drop_labels)) {
    throw usage_error(options.extend_head ? "--extend-head" : "--drop-labels", ": ",
                      source.path().string(), " has no trained head; leave the option out");
  }
  if (wants_head && kind == TaskKind::classification && !model.config.labels_fault.empty()) {
    throw model_error(model.config.labels_fault, "; --reinit-head starts a new head");
  }
  auto task = with_memory_advice(
      "while the data are read; files with fewer rows, or a shorter --max-length, need less", [&] {
        return traits_of(kind).make(of_task, {*model.tokenizer, model.config, wants_head});
      });
  if (wants_head && !task->keeps_head()) {
    const bool can_extend = !options.extend_head && kind == TaskKind::classification &&
                            !lacking(task->labels(), model.config.labels).empty();
    throw model_error(source.path().string(), ": the model has a head for other labels: ",
                      options.extend_head
                          ? trained_for(model.config)
                          : difference_of_heads(model.config.labels, task->labels()),
                      can_extend ? "; --extend-head adds the labels that it lacks" : "",
                      "; --reinit-head starts a new one");
  }
  return task;
}

std::vector<std::string> metrics_of_run(const TrainOptions& options, const Layout& layout,
                                        const Task& task, const EncoderConfig& config,
                                        bool on_gpu) {
  std::vector<std::string> names = run_metric_names();
  auto add = [&](const std::vector<std::string>& more) {
    names.insert(names.end(), more.begin(), more.end());
  };
  add(layout_metric_names(layout));
  if (on_gpu) {
    names.emplace_back("device_peak_memory_mb");
    // NCCL may then add gradients, and the number of bytes that it sends is not known.
    if (options.no_deterministic) std::erase(names, "dp_bytes");
  }
  if (!task.eval_set()) return names;
  add(task.metric_names());
  const std::vector<std::string> fitted = task.calibration_metric_names();
  if (task.kind() == TaskKind::classification) {
    const bool mixes = std::find(fitted.begin(), fitted.end(), "eval_mix_model") != fitted.end();
    const bool begins_as_fit =
        is_quick(options) ? mixes : resolved_head_init(options, task, config) == "fit";
    add(baseline_metric_names(
        task.metric_names(),
        {.ngrams = !options.no_ngram_baseline, .unmixed = mixes, .frozen = begins_as_fit}));
  }
  add(fitted);
  add(evaluation_metric_names());
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

int lowest_trained_layer(const TrainOptions& options, const EncoderConfig& config) {
  if (options.freeze == "none") return 0;
  if (options.freeze == "embeddings") return 1;
  auto layers = parse_int(options.freeze);
  if (!layers || *layers < 0 || *layers > config.num_hidden_layers) {
    throw usage_error("--freeze ", options.freeze,
                      ": must be none, embeddings, or a number of layers up to ",
                      config.num_hidden_layers);
  }
  const int lowest = int(*layers) + 1;
  for (int64_t layer = lowest - 1; layer < config.num_hidden_layers; ++layer) {
    if (config.weights_layer(layer) >= lowest - 1) continue;
    throw usage_error("--freeze ", options.freeze, ": layer ", layer + 1,
                      " has the weights of layer ", config.weights_layer(layer) + 1,
                      ", which would be frozen; use --freeze embeddings or --freeze ",
                      config.num_hidden_layers);
  }
  return lowest;
}

Schedule make_schedule(const TrainOptions& options, int64_t samples) {
  int64_t per_epoch = steps_per_epoch(samples, *options.batch_size);
  Schedule schedule;
  schedule.kind = schedule_named(options.schedule);
  schedule.learning_rate = *options.learning_rate;
  auto by_epochs = int64_t(std::ceil(*options.epochs * double(per_epoch) - 1e-9));
  schedule.total_steps = options.max_steps.value_or(std::max<int64_t>(1, by_epochs));
  schedule.warmup_steps =
      options.warmup_steps.value_or(warmup_steps_for(schedule.total_steps, *options.warmup_ratio));
  return schedule;
}

ModelPart whole_model(const TrainOptions& options, const EncoderConfig& config) {
  return ModelPart::whole(config, options.tensor_shards.value_or(1));
}

std::string describe_micro_batches(const TrainOptions& o) {
  const int64_t v = o.tensor_shards.value_or(1);
  return concat(
      o.micro_batches
          ? concat(counted(*o.micro_batches, "micro-batch", "micro-batches"), " a virtual shard")
          : concat("micro-batches of up to ", counted(*o.micro_batch_tokens, "token")),
      v > 1 ? concat(", layers in ", counted(v, "tensor shard")) : "");
}

StepOptions step_options(const TrainOptions& o, const EncoderConfig& config) {
  StepOptions step;
  step.seed = o.seed;
  step.virtual_shards = *o.virtual_shards;
  step.micro_batches = micro_batching(o);
  step.dropout = o.dropout.value_or(-1);
  step.max_grad_norm = o.max_grad_norm;
  step.weight_decay = o.weight_decay;
  step.adam_beta1 = o.adam_beta1;
  step.adam_beta2 = o.adam_beta2;
  step.adam_epsilon = o.adam_epsilon;
  step.layer_lr_decay = *o.layer_lr_decay;
  step.lowest_layer = lowest_trained_layer(o, config);
  step.deterministic = !o.no_deterministic;
  step.bucket_bytes = bucket_bytes(o);
  step.wire = wire_type(o);
  return step;
}

namespace {

HeadPolicy head_policy(const TrainOptions& options, const EncoderConfig& config,
                       const ParameterTable& table) {
  if (options.reinit) return HeadPolicy::renew_all;
  if (fits_head(options)) return HeadPolicy::fitted;
  const bool renews = options.reinit_head || is_other_head(config, table.head().kind);
  return renews ? HeadPolicy::renew : HeadPolicy::keep_or_new;
}

}  // namespace

void check_initial(const TrainOptions& options, const EncoderConfig& config,
                   const ParameterTable& table, const WeightSource& source,
                   std::span<const int32_t> head_rows) {
  check_pretrained(table, source, head_policy(options, config, table), head_rows);
}

PretrainedReport load_initial(const TrainOptions& options, const EncoderConfig& config,
                              const ParameterTable& table, const ParameterTable& held,
                              const WeightSource& source, std::span<const int32_t> head_rows,
                              float* arena) {
  const HeadPolicy policy = head_policy(options, config, table);
  PretrainedReport report = load_pretrained(table, held, source, config.initializer_range,
                                            options.seed, policy, arena, head_rows);
  if (policy == HeadPolicy::renew_all) set_sinusoidal_positions(config, held, arena);
  return report;
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

void require_no_pipes(const TrainOptions& options, int hosts) {
  for (const fs::path& file : data_files(options)) {
    if (!is_pipe(file)) continue;
    throw data_error(file.string(), ": is a pipe, and a process of each of the ", hosts,
                     " hosts reads the data; write it to a file first");
  }
}

void check_own_inputs_survive(const TrainOptions& options, const ModelFiles& model,
                              const WeightSource& source) {
  std::vector<fs::path> inputs = data_files(options);
  for (auto& file : model_files(model, source)) inputs.push_back(std::move(file));
  inputs.insert(inputs.end(), options.baselines.begin(), options.baselines.end());
  check_inputs_survive(options.output, inputs);
}

void require_no_pipe(const fs::path& file) {
  if (kind_of(file, ExitCode::model) != FileKind::pipe) return;
  throw model_error(file.string(), ": is a pipe, and training reads its model more than once; ",
                    "write it to a file first");
}

}  // namespace finetune

// Checks option values and combinations, and derives settings from them.
#include "train/options/options.h"

#include <map>
#include <string>

#include "core/error.h"
#include "distributed/layout/layout.h"
#include "distributed/pipeline/pipeline_schedule.h"
#include "tasks/registry.h"
#include "tasks/task.h"
#include "train/options/option_values.h"
#include "train/options/option_words.h"
#include "train/options/table/option_table.h"
#include "train/recipe/recipe.h"
#include "train/run/gates.h"

namespace finetune {
namespace {

void require_mix(const TrainOptions& o) {
  const char* against = !o.multi_label.empty() ? "--multi-label"
                        : o.regression         ? "--regression"
                        : o.no_calibration     ? "--no-calibration"
                        : o.no_ngram_baseline  ? "--no-ngram-baseline"
                                               : nullptr;
  if (against) throw usage_error("--ngram-mix yes and ", against, " exclude each other");
}

void validate_head(const TrainOptions& o) {
  const char* changes = o.extend_head ? "--extend-head" : o.drop_labels ? "--drop-labels" : nullptr;
  if (changes == nullptr) return;
  if (o.reinit_head) throw usage_error(changes, " and --reinit-head exclude each other");
  if (is_quick(o)) {
    throw usage_error(changes, " and --recipe quick, which fits a new head, exclude each other");
  }
  if (o.regression)
    throw usage_error(changes, " changes labels, and with --regression there are none");
}

// Columns beside the text are inputs of the linear model, which is used only in a mix.
void validate_side_columns(const TrainOptions& o) {
  const char* given = !o.number_columns.empty()     ? "--number-columns"
                      : !o.category_columns.empty() ? "--category-columns"
                                                    : nullptr;
  if (given == nullptr) return;
  if (o.number_columns.size() > kMostSideColumns || o.category_columns.size() > kMostSideColumns) {
    throw usage_error(given, ": at most ", kMostSideColumns, " columns of a kind are allowed");
  }
  if (is_evaluated(o) && mixes_with_ngrams(o)) return;
  const char* why = !o.multi_label.empty() ? "with --multi-label there is none"
                    : o.regression         ? "with --regression there is none"
                    : o.no_calibration     ? "leave out --no-calibration"
                    : o.no_ngram_baseline  ? "leave out --no-ngram-baseline"
                    : !is_evaluated(o)     ? "give --eval or --eval-fraction, which fit it"
                                           : "give --ngram-mix yes";
  throw usage_error(given, " is for the linear model that is mixed with the encoder: ", why);
}

void validate_folds(const TrainOptions& o) {
  if (!o.folds) return;
  const std::string name = concat("--folds ", *o.folds);
  if (!is_quick(o)) {
    throw usage_error(name,
                      " is for --recipe quick, whose linear fits take seconds; a fine-tuned "
                      "model is measured on rows of --eval or --eval-fraction");
  }
  const char* against = !o.eval.empty()                           ? "--eval"
                        : o.eval_fraction != 0                    ? "--eval-fraction"
                        : o.max_eval_samples                      ? "--max-eval-samples"
                        : o.long_text != TrainOptions().long_text ? "--long-text windows"
                                                                  : nullptr;
  if (against)
    throw usage_error(name, ", which measures every training row, and ", against,
                      " exclude each other");
}

void validate_evaluation(const TrainOptions& o) {
  if (!o.eval.empty() && o.eval_fraction != 0) {
    throw usage_error("--eval and --eval-fraction exclude each other");
  }
  if (!o.eval_group.empty() && o.eval_fraction == 0) {
    throw usage_error("--eval-group ", in_quotes(o.eval_group),
                      " needs --eval-fraction, the share of rows to hold out");
  }
  if (o.eval_split == "distinct" && o.eval_fraction == 0) {
    throw usage_error("--eval-split distinct needs --eval-fraction, the share of rows to hold out");
  }
  validate_eval_group(o);
  validate_folds(o);
  if (o.tune_thresholds && o.multi_label.empty()) {
    throw usage_error("--tune-thresholds is for several labels a row: give --multi-label");
  }
  if (o.tune_thresholds && o.no_calibration) {
    throw usage_error("--tune-thresholds and --no-calibration exclude each other");
  }
  if (o.ngram_mix == "yes") require_mix(o);
  if (is_evaluated(o)) return;
  const char* needing = o.early_stopping > 0     ? "--early-stopping"
                        : !o.best_metric.empty() ? "--best-metric"
                        : o.tune_thresholds      ? "--tune-thresholds"
                        : o.ngram_mix == "yes"   ? "--ngram-mix yes"
                                                 : nullptr;
  if (needing == nullptr) return;
  throw usage_error(needing, " needs evaluation data: give --eval or --eval-fraction");
}

}  // namespace

bool has_one_label(const TrainOptions& o) {
  return !o.regression && o.multi_label.empty();
}

bool is_evaluated(const TrainOptions& o) {
  return !o.eval.empty() || o.eval_fraction != 0 || o.folds;
}

bool mixes_with_ngrams(const TrainOptions& o) {
  const bool is_wanted = o.ngram_mix == "yes" || (o.ngram_mix == "auto" && recipe_of(o) != "hf");
  return is_wanted && has_one_label(o) && !o.no_calibration && !o.no_ngram_baseline;
}

namespace {

// The decoder of masked words is the word embedding. So the embedding is trained, and the first and
// the last layer must be in one process.
void validate_masked(const TrainOptions& o) {
  if (o.task != name_of(TaskKind::mlm)) return;
  auto refuse = [&](const std::string& option, std::string_view why) {
    throw usage_error(option, " is not for ", traits_of(TaskKind::mlm).title, ": ", why);
  };
  if (o.device == "cuda") refuse("--device cuda", "it runs only on the CPU; use --device cpu");
  if (o.pp.value_or(1) > 1) {
    refuse(concat("--pp ", *o.pp), "the decoder shares the embeddings' weights");
  }
  if (o.freeze != "none") refuse(concat("--freeze ", o.freeze), "all layers are trained");
}

}  // namespace

std::string wanted_device(const TrainOptions& o) {
  return o.device == "auto" && o.task == name_of(TaskKind::mlm) ? "cpu" : o.device;
}

void validate_eval_group(const TrainOptions& o) {
  if (!o.eval_group.empty() && o.eval_split == "distinct") {
    throw usage_error("--eval-group and --eval-split distinct exclude each other");
  }
  if (o.eval_group.empty() || o.eval_group != o.label_column) return;
  throw usage_error("--eval-group ", in_quotes(o.eval_group),
                    " is the label column: training would never see the labels held out");
}

void validate_values(const TrainOptions& o) {
  static const TrainOptions defaults;
  for (const TrainOption& option : train_options()) {
    const bool may_be_empty = !config_value(option.value_in(defaults));
    const std::string fault = fault_of_value(option.info, option.value_in(o), may_be_empty);
    if (!fault.empty()) throw usage_error("--", option.info.name, " ", fault);
  }
}

void validate_windows(const TrainOptions& o) {
  const TrainOptions defaults;
  const char* of_windows = o.window_stride != defaults.window_stride ? "--window-stride"
                           : o.max_windows != defaults.max_windows   ? "--max-windows"
                                                                     : nullptr;
  if (of_windows && o.long_text == defaults.long_text) {
    throw usage_error(of_windows, " is for --long-text windows");
  }
}

void validate(const TrainOptions& o) {
  if (o.model.empty())
    throw usage_error("--model is required: a model directory, or an id in the Hugging Face cache");
  if (o.train.empty()) throw usage_error("--train is required: one or more data files");
  if (o.output.empty()) throw usage_error("--output is required: the directory of the run");
  validate_values(o);
  parse_delimiter(o.delimiter);
  require_encoding(o.encoding);
  validate_windows(o);
  validate_evaluation(o);
  validate_masked(o);
  validate_pipeline(o);
  validate_offload(o, false);
  if (o.regression && !o.multi_label.empty()) {
    throw usage_error("--regression and --multi-label exclude each other");
  }
  if (o.regression && (o.class_weights != "none" || o.label_smoothing != 0 ||
                       o.ignore_unknown_labels || o.normalize_labels)) {
    throw usage_error(
        "--regression has no classes: leave out --class-weights, --label-smoothing, "
        "--ignore-unknown-labels and --normalize-labels");
  }
  validate_head(o);
  validate_side_columns(o);
  if (o.resume && o.overwrite) throw usage_error("--resume and --overwrite exclude each other");
  if (!o.tolerances.empty() && o.baselines.empty()) {
    throw usage_error("--tolerance needs --baseline, the metrics.json to compare with");
  }
  if (!o.time_budget.empty()) parse_duration(o.time_budget, "--time-budget");
  if (!o.time_limit.empty()) parse_duration(o.time_limit, "--time-limit");
  comm_timeout_seconds(o);
  for (const std::string& text : o.assertions) parse_assertion(text);
}

void require_options_of(TaskKind kind, const TrainOptions& options) {
  static const TrainOptions defaults;
  std::map<TaskKind, std::vector<std::string>> others;
  for (const TrainOption& option : train_options()) {
    if (!is_foreign(option.info, kind)) continue;
    if (option.value_in(options) == option.value_in(defaults)) continue;
    others[*task_of(option.info)].push_back(concat("--", option.info.name));
  }
  for (const auto& [task, names] : others) {
    throw usage_error(join(names, ", "), names.size() == 1 ? " is" : " are", " for ",
                      traits_of(task).title, " alone: the task is ", name_of(kind),
                      options.task.empty() ? concat(", as ", options.train.at(0), " shows") : "");
  }
}

MicroBatching micro_batching(const TrainOptions& o) {
  return o.micro_batches ? MicroBatching::into(*o.micro_batches)
                         : MicroBatching::of_tokens(*o.micro_batch_tokens);
}

double comm_timeout_seconds(const TrainOptions& o) {
  return parse_duration(o.comm_timeout, "--comm-timeout", true);
}

int64_t bucket_bytes(const TrainOptions& o) {
  return int64_t(o.bucket_mb * double(1 << 20));
}

DType wire_type(const TrainOptions& o) {
  return o.comm_precision == "bf16" ? DType::bf16 : DType::f32;
}

void validate_pipeline(const TrainOptions& o) {
  parse_placement(o.placement);
  const PipelineKind kind = parse_pipeline_kind(o.pipeline_schedule);
  if (o.chunks && kind != PipelineKind::interleaved) {
    throw usage_error("--chunks ", *o.chunks, " needs --pipeline-schedule interleaved; it is ",
                      name_of(kind));
  }
  if (o.stages != "auto" && !o.pp) {
    throw usage_error("--stages ", in_quotes(o.stages), " needs --pp, the number of stages");
  }
  if (o.micro_batches && o.micro_batch_tokens) {
    throw usage_error("--micro-batches ", *o.micro_batches, " and --micro-batch-tokens ",
                      *o.micro_batch_tokens, " exclude each other: both say where to cut");
  }
}

void validate_offload(const TrainOptions& o, bool may_be_gpu) {
  if (!o.offload_activations) return;
  const std::string name = concat("--offload-activations ", *o.offload_activations);
  if (!o.recompute) {
    throw usage_error(name, " needs --recompute: inputs of layers are what is moved");
  }
  if (o.device == "cpu" || (o.device == "auto" && !may_be_gpu)) {
    throw usage_error(name, " needs --device cuda: with --device ", o.device,
                      o.device == "auto" ? " the CPU may compute, whose" : "",
                      " activations are in the host's memory");
  }
}

namespace {

struct TaskSetting {
  std::string_view name;  // of the option
  void (*apply)(const TrainOptions& o, TaskOptions& t);
};

using From = const TrainOptions&;
using To = TaskOptions&;

int squad_version_named(const std::string& word) {
  return word == "auto" ? 0 : word == "1" ? 1 : 2;
}

constexpr TaskSetting kSettings[] = {
    {"eval-fraction", [](From o, To t) { t.eval_fraction = o.eval_fraction; }},
    {"eval-group", [](From o, To t) { t.eval_group = o.eval_group; }},
    {"eval-split",
     [](From o, To t) {
       t.stratified_split = o.eval_split != "random";
       t.distinct_split = o.eval_split == "distinct";
     }},
    {"folds", [](From o, To t) { t.folds = int(o.folds.value_or(0)); }},
    {"seed", [](From o, To t) { t.seed = o.seed; }},
    {"max-train-samples",
     [](From o, To t) { t.max_train_samples = o.max_train_samples.value_or(0); }},
    {"max-eval-samples", [](From o, To t) { t.max_eval_samples = o.max_eval_samples.value_or(0); }},
    {"delimiter", [](From o, To t) { t.rows.delimiter = parse_delimiter(o.delimiter); }},
    {"encoding", [](From o, To t) { t.rows.encoding = o.encoding; }},
    {"skip-bad-rows", [](From o, To t) { t.rows.skip_bad_rows = o.skip_bad_rows; }},
    {"max-length", [](From o, To t) { t.max_length = o.max_length.value_or(0); }},
    // classification
    {"text-column", [](From o, To t) { t.text_columns = o.text_columns; }},
    {"text-pair-column", [](From o, To t) { t.text_pair_column = o.text_pair_column; }},
    {"label-column", [](From o, To t) { t.label_column = o.label_column; }},
    {"number-columns", [](From o, To t) { t.number_columns = o.number_columns; }},
    {"category-columns", [](From o, To t) { t.category_columns = o.category_columns; }},
    {"multi-label", [](From o, To t) { t.multi_label_separator = o.multi_label; }},
    {"regression", [](From o, To t) { t.regression = o.regression; }},
    {"no-standardize", [](From o, To t) { t.standardized_targets = !o.no_standardize; }},
    {"class-weights",
     [](From o, To t) { t.balanced_class_weights = o.class_weights == "balanced"; }},
    {"label-smoothing", [](From o, To t) { t.label_smoothing = o.label_smoothing; }},
    {"ignore-unknown-labels",
     [](From o, To t) { t.ignore_unknown_labels = o.ignore_unknown_labels; }},
    {"normalize-labels", [](From o, To t) { t.normalizes_labels = o.normalize_labels; }},
    {"extend-head", [](From o, To t) { t.extends_head = o.extend_head; }},
    {"drop-labels", [](From o, To t) { t.drops_labels = o.drop_labels; }},
    {"no-ngram-baseline", [](From o, To t) { t.ngram_baseline = !o.no_ngram_baseline; }},
    {"no-calibration", [](From o, To t) { t.fits_calibration = !o.no_calibration; }},
    {"tune-thresholds", [](From o, To t) { t.tunes_thresholds = o.tune_thresholds; }},
    {"ngram-mix", [](From o, To t) { t.ngram_mix = mixes_with_ngrams(o); }},
    {"long-text", [](From o, To t) { t.long_texts.in_windows = o.long_text == kWindowsWord; }},
    {"window-stride", [](From o, To t) { t.long_texts.stride = o.window_stride; }},
    {"max-windows", [](From o, To t) { t.long_texts.most_windows = o.max_windows; }},
    // question answering
    {"doc-stride", [](From o, To t) { t.doc_stride = o.doc_stride; }},
    {"n-best", [](From o, To t) { t.n_best = o.n_best; }},
    {"max-answer-length", [](From o, To t) { t.max_answer_length = o.max_answer_length; }},
    {"null-threshold", [](From o, To t) { t.null_threshold = o.null_threshold; }},
    {"squad-version", [](From o, To t) { t.squad_version = squad_version_named(o.squad_version); }},
    // masked language modelling
    {"mask-probability", [](From o, To t) { t.mask_probability = o.mask_probability; }},
    {"no-whole-words", [](From o, To t) { t.whole_words = !o.no_whole_words; }},
    {"distinct", [](From o, To t) { t.distinct_texts = o.distinct; }},
};

}  // namespace

TaskOptions task_options(const TrainOptions& options) {
  TaskOptions to;
  for (const TaskSetting& setting : kSettings) setting.apply(options, to);
  to.baselines = is_evaluated(options);
  return to;
}

void apply_given(std::span<const GivenOption> given, const TrainOptions& options, TaskOptions& to) {
  for (const TaskSetting& setting : kSettings) {
    for (const GivenOption& option : given) {
      if (option.info->name == setting.name) setting.apply(options, to);
    }
  }
}

}  // namespace finetune

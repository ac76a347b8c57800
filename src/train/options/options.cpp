// Checks option values and combinations, and derives settings from them.
#include "train/options/options.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.h"
#include "core/threads/parallel.h"
#include "tasks/registry.h"
#include "train/options/duration.h"
#include "train/options/layout_options.h"
#include "train/options/option_values.h"
#include "train/recipe/recipe.h"
#include "train/run/gates.h"

namespace finetune {
namespace {

std::string words_of(const OptionRange& range) {
  auto text = [](double end) {  // 1000000, not 1e+06
    return end == std::floor(end) ? concat(int64_t(end)) : concat(end);
  };
  std::string words = concat(range.above_least ? "above " : "at least ", text(range.least));
  if (range.as_float) return words + " (in single precision)";
  if (std::isinf(range.most)) return words;
  if (!range.above_least && !range.below_most) {
    return concat("between ", text(range.least), " and ", text(range.most));
  }
  return concat(words, range.below_most ? " and below " : " and at most ", text(range.most));
}

bool inside(const OptionRange& range, double value) {
  if (range.as_float) value = double(float(value));
  return (range.above_least ? value > range.least : value >= range.least) &&
         (range.below_most ? value < range.most : value <= range.most);
}

// Options go into config.toml, and TOML is UTF-8.
void require_text(const OptionInfo& info, const std::string& value) {
  if (invalid_utf8(value) != std::string::npos) {
    throw usage_error("--", info.name, " ", in_quotes(value), ": is not valid UTF-8");
  }
}

std::optional<ConfigValue> value_of(const std::vector<ConfigItem>& items, std::string_view name) {
  const auto found = std::find_if(items.begin(), items.end(),
                                  [&](const ConfigItem& item) { return item.name == name; });
  return found == items.end() ? std::nullopt : std::optional(found->value);
}

// Values as the options' declarations have them, wherever they came from: the command line,
// config.toml or a checkpoint.
struct ValueCheck {
  std::vector<ConfigItem> defaults = config_items(TrainOptions());

  void operator()(const OptionInfo& info, const std::string& value) const {
    require_text(info, value);
    if (info.choices.empty() || (value.empty() && !value_of(defaults, info.name))) return;
    const auto words = split(info.choices, '|');
    if (std::find(words.begin(), words.end(), value) != words.end()) return;
    throw usage_error("--", info.name, " ", in_quotes(value), ": must be one of ",
                      join({words.begin(), words.end()}, ", "));
  }
  void operator()(const OptionInfo& info, const std::vector<std::string>& values) const {
    for (const auto& value : values) require_text(info, value);
  }
  void operator()(const OptionInfo& info, double value) const {
    if (!std::isfinite(value)) {
      throw usage_error("--", info.name, " ", value, ": must be a finite number");
    }
    require_inside(info, value);
  }
  void operator()(const OptionInfo& info, int64_t value) const { require_inside(info, value); }
  void operator()(const OptionInfo&, uint64_t) const {}
  void operator()(const OptionInfo&, bool) const {}
  template <typename Number>
  void operator()(const OptionInfo& info, const std::optional<Number>& value) const {
    if (value) (*this)(info, *value);
  }
};

void require_mix(const TrainOptions& o) {
  const char* against = !o.multi_label.empty() ? "--multi-label"
                        : o.regression         ? "--regression"
                        : o.no_calibration     ? "--no-calibration"
                        : o.no_ngram_baseline  ? "--no-ngram-baseline"
                                               : nullptr;
  if (against) throw usage_error("--ngram-mix yes and ", against, " exclude each other");
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
  if (o.tune_thresholds && o.multi_label.empty()) {
    throw usage_error("--tune-thresholds is for several labels a row: give --multi-label");
  }
  if (o.tune_thresholds && o.no_calibration) {
    throw usage_error("--tune-thresholds and --no-calibration exclude each other");
  }
  if (o.ngram_mix == "yes") require_mix(o);
  if (!o.eval.empty() || o.eval_fraction != 0) return;
  const char* needing = o.early_stopping > 0     ? "--early-stopping"
                        : !o.best_metric.empty() ? "--best-metric"
                        : o.tune_thresholds      ? "--tune-thresholds"
                        : o.ngram_mix == "yes"   ? "--ngram-mix yes"
                                                 : nullptr;
  if (needing == nullptr) return;
  throw usage_error(needing, " needs evaluation data: give --eval or --eval-fraction");
}

template <typename Number>
void require_number_inside(const OptionInfo& info, Number value) {
  if (inside(info.range, double(value))) return;
  throw usage_error("--", info.name, " ", value, ": must be ", words_of(info.range));
}

}  // namespace

bool mixes_with_ngrams(const TrainOptions& o) {
  const bool is_wanted = o.ngram_mix == "yes" || (o.ngram_mix == "auto" && recipe_of(o) == "auto");
  return is_wanted && o.multi_label.empty() && !o.regression && !o.no_calibration &&
         !o.no_ngram_baseline;
}

void require_inside(const OptionInfo& info, double value) {
  require_number_inside(info, value);
}

void require_inside(const OptionInfo& info, int64_t value) {
  require_number_inside(info, value);
}

namespace {

// The decoder of masked words is the word embedding: it is trained, and both ends of the model are
// in one process.
void validate_masked(const TrainOptions& o) {
  if (o.task != name_of(TaskKind::mlm)) return;
  auto refuse = [&](const std::string& option, std::string_view why) {
    throw usage_error(option, " is not for ", traits_of(TaskKind::mlm).title, ": ", why);
  };
  if (o.device == "cuda") refuse("--device cuda", "it is computed on the CPU; use --device cpu");
  if (o.pp.value_or(1) > 1) {
    refuse(concat("--pp ", *o.pp), "the decoder has its weights in common with the embeddings");
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
  for_each_option(o, ValueCheck());
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
  if (o.resume && o.overwrite) throw usage_error("--resume and --overwrite exclude each other");
  if (!o.tolerances.empty() && o.baselines.empty()) {
    throw usage_error("--tolerance needs --baseline, the metrics.json to compare with");
  }
  if (!o.time_limit.empty()) parse_duration(o.time_limit, "--time-limit");
  comm_timeout_seconds(o);
  for (const std::string& text : o.assertions) parse_assertion(text);
}

void require_options_of(TaskKind kind, const TrainOptions& options) {
  const std::vector<ConfigItem> given = config_items(options),
                                defaults = config_items(TrainOptions());
  std::map<TaskKind, std::vector<std::string>> others;
  for_each_option(options, [&](const OptionInfo& info, const auto&) {
    const std::optional<TaskKind> task = task_of_option(info.name);
    if (!is_foreign_option(info.name, kind) ||
        value_of(given, info.name) == value_of(defaults, info.name)) {
      return;
    }
    others[*task].push_back(concat("--", info.name));
  });
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

TaskOptions task_options(const TrainOptions& o) {
  TaskOptions t;
  t.eval_fraction = o.eval_fraction;
  t.seed = o.seed;
  t.max_train_samples = o.max_train_samples.value_or(0);
  t.max_eval_samples = o.max_eval_samples.value_or(0);
  t.rows = {.skip_bad_rows = o.skip_bad_rows,
            .delimiter = parse_delimiter(o.delimiter),
            .encoding = o.encoding};
  t.max_length = o.max_length.value_or(0);
  t.text_columns = o.text_columns;
  t.text_pair_column = o.text_pair_column;
  t.label_column = o.label_column;
  t.multi_label_separator = o.multi_label;
  t.regression = o.regression;
  t.balanced_class_weights = o.class_weights == "balanced";
  t.label_smoothing = o.label_smoothing;
  t.ignore_unknown_labels = o.ignore_unknown_labels;
  t.normalizes_labels = o.normalize_labels;
  t.baselines = !o.eval.empty() || o.eval_fraction > 0;
  t.ngram_baseline = !o.no_ngram_baseline;
  t.eval_group = o.eval_group;
  t.stratified_split = o.eval_split != "random";
  t.distinct_split = o.eval_split == "distinct";
  t.fits_calibration = !o.no_calibration;
  t.tunes_thresholds = o.tune_thresholds;
  t.ngram_mix = mixes_with_ngrams(o);
  t.standardized_targets = !o.no_standardize;
  t.long_texts = {o.long_text == kWindowsWord, o.window_stride, o.max_windows};
  t.doc_stride = o.doc_stride;
  t.n_best = o.n_best;
  t.max_answer_length = o.max_answer_length;
  t.null_threshold = o.null_threshold;
  t.squad_version = o.squad_version == "auto" ? 0 : o.squad_version == "1" ? 1 : 2;
  t.mask_probability = o.mask_probability;
  t.whole_words = !o.no_whole_words;
  t.distinct_texts = o.distinct;
  return t;
}

}  // namespace finetune

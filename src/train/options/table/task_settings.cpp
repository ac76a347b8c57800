// Where each option of train goes in TaskOptions.
#include "train/options/table/task_settings.h"

#include "tasks/task.h"
#include "train/options/options.h"

namespace finetune {
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
    {"multi-label", [](From o, To t) { t.multi_label_separator = o.multi_label; }},
    {"regression", [](From o, To t) { t.regression = o.regression; }},
    {"no-standardize", [](From o, To t) { t.standardized_targets = !o.no_standardize; }},
    {"class-weights",
     [](From o, To t) { t.balanced_class_weights = o.class_weights == "balanced"; }},
    {"label-smoothing", [](From o, To t) { t.label_smoothing = o.label_smoothing; }},
    {"ignore-unknown-labels",
     [](From o, To t) { t.ignore_unknown_labels = o.ignore_unknown_labels; }},
    {"normalize-labels", [](From o, To t) { t.normalizes_labels = o.normalize_labels; }},
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
  to.baselines = !options.eval.empty() || options.eval_fraction > 0;
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

// Task: the interface between a task (what a model learns) and the training loop.
// A task reads its data, turns it into tokenized samples and targets, and logits into metrics and
// files. Its loss is an Objective (objective.h). A new task is a folder and a row
// (docs/howto/add-task.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/numeric/index_range.h"
#include "core/numeric/packed_batch.h"
#include "data/columns/text_columns.h"
#include "data/input_file.h"
#include "data/rows/row_options.h"
#include "model/encoder.h"
#include "tasks/calibration.h"
#include "tasks/target_scale.h"
#include "tokenizer/tokenizer.h"

namespace finetune {

class Evaluator;        // tasks/evaluator.h
struct TrainingArrays;  // tasks/objective.h
struct Baselines;       // tasks/baseline.h

enum class TaskKind { classification, qa, mlm };
enum class ProblemType { single_label, multi_label, regression };  // of classification

// What happens to texts that are longer than a sample may be.
inline constexpr std::string_view kCutWord = "cut", kWindowsWord = "windows";
inline constexpr std::string_view kLongTextWords = "cut|windows";
inline constexpr int64_t kMostStride = int64_t{1} << 32;
inline constexpr int64_t kMostWindows = int64_t{1} << 16;

inline constexpr size_t kMostSideColumns = 64;  // of each kind

struct LongTexts {
  bool in_windows = false;    // false: they are cut
  int64_t stride = 32;        // tokens shared by neighbouring windows, at most half a window
  int64_t most_windows = 16;  // per text; the rest is cut
};

// Options of train, evaluate and predict that concern a task (docs/reference/commands.md): the
// data, and a struct for each task.
struct DataOptions {
  std::vector<InputFile> train_files;
  std::vector<InputFile> eval_files;
  double eval_fraction = 0;
  uint64_t seed = 42;
  int64_t max_train_samples = 0;  // 0: all
  int64_t max_eval_samples = 0;
  RowOptions rows;
  int64_t max_length = 0;  // 0: the task's default, limited to the model's positions

  // For tasks that read rows (CSV and the like):
  std::vector<std::string> text_columns;  // empty: "text" or the only candidate
  std::string text_pair_column;
  std::string label_column = "label";
  // Columns beside the text, for the linear model on n-grams (classification):
  std::vector<std::string> number_columns, category_columns;

  ColumnNames column_names() const {
    return {text_columns, text_pair_column, label_column, number_columns, category_columns};
  }
  bool has_side_columns() const { return !number_columns.empty() || !category_columns.empty(); }
  void leave_out_side_columns() {
    number_columns.clear();
    category_columns.clear();
  }
  // Numbers, then categories.
  std::vector<std::string> side_columns() const {
    std::vector<std::string> all = number_columns;
    all.insert(all.end(), category_columns.begin(), category_columns.end());
    return all;
  }
};

struct ClassificationOptions {
  LongTexts long_texts;
  std::string multi_label_separator;  // empty: single-label
  bool regression = false;
  bool balanced_class_weights = false;
  double label_smoothing = 0;
  bool ignore_unknown_labels = false;
  bool normalizes_labels = false;    // joins labels that look the same to a person (label_names.h)
  bool baselines = false;            // keeps the rows' labels for baselines()
  bool ngram_baseline = false;       // keeps their texts, too
  std::string eval_group;            // held-out rows: whole groups by the values of this column
  bool stratified_split = true;      // held-out rows: the same share of each label
  bool distinct_split = false;       // held-out rows: keeps equal texts together
  int folds = 0;                     // train: measures the training rows out of fold; 0: does not
  bool fits_calibration = true;      // train: calibrates the exported model on the evaluation rows
  bool ngram_mix = false;            // train: mixes it with the linear model on n-grams
  bool tunes_thresholds = false;     // train, multi-label
  bool extends_head = false;         // train: adds labels that the model's head lacks
  bool drops_labels = false;         // train: removes labels of the head that the data lacks
  bool standardized_targets = true;  // train, regression
  LogitCalibration calibration;      // evaluate, predict: the model's
  std::optional<StoredMix> mix;      // evaluate, predict: the model's, instead of a temperature;
  std::filesystem::path model_directory;  // its file is in this directory
  bool uses_mix = true;
  std::optional<double> min_probability;  // less probable labels become "unsure"
  std::optional<double> target_accuracy;  // evaluate: finds the min_probability for it
  std::optional<PromiseRequest> promise;  // evaluate: finds the min_probability that keeps it
  bool is_automatic = false;              // predict: min_probability is from a promise
  std::vector<std::string> slices;        // evaluate: COLUMN or seen:COLUMN
  std::vector<InputFile> seen_files;      // the training rows of seen:COLUMN
  // A resumed run's labels in order of id. The order is kept if the data has the same labels.
  std::vector<std::string> label_order;
};

struct QaOptions {
  int64_t doc_stride = 128;
  int64_t n_best = 20;
  int64_t max_answer_length = 30;
  double null_threshold = 0;
  int squad_version = 0;  // 0: 2 if the data has unanswerable questions, else 1
};

struct MaskedOptions {
  double mask_probability = 0.15;
  bool whole_words = true;
  bool distinct_texts = false;
};

struct TaskOptions : DataOptions, ClassificationOptions, QaOptions, MaskedOptions {};

// A file of an export that Hugging Face's format does not have.
struct ModelFile {
  std::string name;
  std::string_view bytes;
};

// Flat metrics, in order of name: "eval_accuracy" -> 0.93.
using Metrics = std::map<std::string, double>;

// Counts over texts: texts cut at max-length; tokens before cutting, with special tokens; tokens
// that were cut off; unknown tokens.
struct TextCounts {
  int64_t truncated = 0, text_tokens = 0, lost = 0, unknown = 0;

  void add_counts(const TextCounts& more) {
    truncated += more.truncated;
    text_tokens += more.text_tokens;
    lost += more.lost;
    unknown += more.unknown;
  }
};

// One side of the data: train or eval. Owned by the task.
struct SampleSet : TextCounts {
  TokenizedSamples samples;
  // If rows have windows: row e has the samples [first_window[e], first_window[e+1]). Their logits
  // are pooled before an Evaluator gets them; it then counts rows.
  std::vector<int64_t> first_window;  // (rows + 1), or empty: each row is one sample
  int64_t examples = 0;               // rows or questions

  // The samples of a row.
  IndexRange samples_of(int64_t row) const {
    if (first_window.empty()) return {row, row + 1};
    return {first_window[size_t(row)], first_window[size_t(row) + 1]};
  }
};

// The result of fitting a calibration, a mix with n-grams and thresholds.
struct CalibrationReport {
  std::string line;                                        // for the log; may be empty
  std::vector<std::pair<std::string, std::string>> facts;  // for run.json
  std::string why_no_mix;  // why a wanted mix could not be judged, or empty
};

class Task {
 public:
  virtual ~Task() = default;
  virtual TaskKind kind() const = 0;
  virtual Head head() const = 0;
  // Whether the model's own trained head fits this task and its labels; else it needs a new one.
  virtual bool keeps_head() const = 0;
  // If a kept head gained or lost labels: for each output its old index in the model's head, or -1
  // for a new one. Empty: the outputs are the model's.
  virtual std::span<const int32_t> head_rows() const { return {}; }
  // Names of the outputs in order of id; empty if they have no names.
  virtual std::vector<std::string> labels() const { return {}; }
  // Regression: converts the trained head's outputs to numbers. An exported head gives numbers.
  virtual TargetScale target_scale() const { return {}; }
  // The labels' names as samples, in order of id, if they may help to learn the labels.
  virtual SampleView label_names() const { return {}; }
  virtual int64_t max_length() const = 0;  // resolved: tokens of a sample

  virtual const SampleSet& train_set() const = 0;
  virtual const SampleSet* eval_set() const = 0;  // null without evaluation data
  // Lines for the log about the data: sizes, labels, truncation, dropped rows.
  virtual std::vector<std::string> describe() const = 0;

  // Views of this task's memory, for make_objective().
  virtual TrainingArrays training_arrays() const = 0;
  // Frees this memory after the arrays have been copied. train_set() keeps its counts but loses its
  // samples; describe() does not change.
  virtual void release_training_arrays() = 0;

  // Sets the options that weight samples, for another run on the same data. Do not call it after
  // release_training_arrays().
  virtual void take_loss_options(const TaskOptions&) {}

  // An evaluator of the evaluation data, which the task holds in memory.
  virtual std::unique_ptr<Evaluator> start_evaluation() = 0;
  // Trains simple models on the training data and measures them on the evaluation data, once. Empty
  // if the task has no baselines. Error(device) or Error(model) if they cannot be computed.
  virtual Baselines baselines();
  virtual std::string best_metric() const = 0;  // "eval_accuracy", "eval_f1", ...
  virtual bool larger_is_better(const std::string& metric) const = 0;
  virtual std::vector<std::string> metric_names() const = 0;  // all that metrics() may give

  // Fits values that are exported with the model (config_json) to its evaluation, which
  // start_evaluation() made, and adds metrics of the fit to `metrics`. If the fit changes the
  // model's answers, the evaluator and `metrics` are updated.
  virtual CalibrationReport calibrate(Evaluator&, Metrics&) { return {}; }
  virtual std::vector<std::string> calibration_metric_names() const { return {}; }
  // Files that an export needs beside the model's own. Call after calibrate(). Valid until the next
  // call.
  virtual std::vector<ModelFile> model_files() const { return {}; }

  // A JSON object that an export adds to config.json: labels (id2label), problem_type, and the
  // object `finetune` with the options that are defaults of evaluate and predict.
  virtual std::string config_json() const = 0;
};

}  // namespace finetune

// The values of the options of `finetune train`, with their defaults. table/ has a row for each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace finetune {

struct TrainOptions {
  std::string task;  // empty: chosen from the data
  std::string model;
  std::vector<std::string> train;
  std::vector<std::string> eval;
  double eval_fraction = 0;
  std::string eval_group;
  std::string eval_split = "stratified";
  std::optional<int64_t> folds;
  std::string output;

  std::vector<std::string> text_columns;
  std::string text_pair_column;
  std::string label_column = "label";
  std::vector<std::string> number_columns, category_columns;
  std::string multi_label;
  bool regression = false;
  bool no_standardize = false;
  std::string class_weights = "none";
  std::optional<int64_t> max_length;
  std::string long_text = "cut";
  int64_t window_stride = 32;
  int64_t max_windows = 16;
  int64_t doc_stride = 128;
  int64_t n_best = 20;
  int64_t max_answer_length = 30;
  double null_threshold = 0;
  std::string squad_version = "auto";
  double mask_probability = 0.15;
  bool no_whole_words = false;
  bool distinct = false;

  std::string recipe;  // not given: recipe_of (train/recipe/recipe.h)
  // The recipe sets these options if they are not given.
  std::optional<double> epochs;
  std::optional<int64_t> max_steps;
  std::optional<int64_t> batch_size;
  std::optional<int64_t> micro_batch_tokens;
  std::optional<int64_t> micro_batches;
  std::optional<double> learning_rate;
  std::optional<double> warmup_ratio;
  std::optional<double> layer_lr_decay;
  std::string schedule = "linear";
  std::optional<int64_t> warmup_steps;
  double weight_decay = 0.01;
  double adam_beta1 = 0.9;
  double adam_beta2 = 0.999;
  double adam_epsilon = 1e-8;
  double max_grad_norm = 1.0;
  std::optional<double> dropout;
  double label_smoothing = 0;
  std::string freeze = "none";
  std::string head_init = "auto";  // resolved: fit or random
  std::string pooling = "auto";    // for --recipe quick
  bool no_label_names = false;
  uint64_t seed = 42;
  bool no_shuffle = false;
  std::optional<int64_t> max_train_samples;
  std::optional<int64_t> max_eval_samples;

  std::optional<int64_t> eval_every;
  std::optional<int64_t> save_every;
  std::optional<int64_t> keep_checkpoints;  // kKeptDuringRun, and none after the run
  std::string best_metric;
  int64_t early_stopping = 0;
  bool no_calibration = false;
  bool tune_thresholds = false;
  std::string ngram_mix = "auto";
  int64_t log_every = 1;
  bool tensorboard = false;
  bool no_ngram_baseline = false;
  bool resume = false;
  bool overwrite = false;
  bool reinit_head = false;
  bool extend_head = false, drop_labels = false;
  bool reinit = false;
  std::string delimiter = "auto";
  std::string encoding = "auto";
  bool skip_bad_rows = false;
  bool ignore_unknown_labels = false;
  bool normalize_labels = false;

  std::string precision = "auto";
  std::string device = "auto";
  std::optional<int64_t> threads;
  bool recompute = false;
  std::optional<int64_t> offload_activations;  // horizon in layers; none: no offload
  std::optional<int64_t> virtual_shards;
  bool shard_optimizer = false;
  bool no_deterministic = false;
  std::optional<int64_t> tensor_shards;  // V; none: tp
  std::optional<int64_t> tp;             // tensor ranks; none: 1
  std::optional<int64_t> pp;             // pipeline stages; none: 1
  std::string placement = "cluster";
  std::string pipeline_schedule = "1f1b";
  std::optional<int64_t> chunks;  // per stage; none: kDefaultChunks if interleaved
  std::string stages = "auto";
  double bucket_mb = 25;
  std::string comm_precision = "fp32";
  std::string comm_timeout = "10m";

  std::string time_budget;
  std::string time_limit;
  std::vector<std::string> assertions;
  std::vector<std::string> baselines;
  std::vector<std::string> tolerances;
  std::string junit;
  bool json = false;
  bool quiet = false;
  bool no_progress = false;
};

constexpr int64_t kMostVirtualShards = 65536;
constexpr int64_t kMostMicroBatches = 65536;  // per virtual shard
constexpr int64_t kKeptDuringRun = 2;         // checkpoints, if --keep-checkpoints is not given
constexpr int64_t kMostRanks = 65536;
inline constexpr int64_t kDefaultChunks = 2;
inline constexpr std::string_view kLayoutGroup = "Layout";
inline constexpr std::string_view kRecipeWords = "hf|auto|quick", kQuickWord = "quick";

inline bool is_quick(const TrainOptions& options) {
  return options.recipe == kQuickWord;
}

// For resolved options: whether the new head begins as a linear fit (train/quick/head_fit.h).
inline bool fits_head(const TrainOptions& options) {
  return options.head_init == "fit";
}

}  // namespace finetune

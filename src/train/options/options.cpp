#include "train/options/options.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/threads/parallel.h"
#include "train/run/gates.h"
#include "train/options/duration.h"
#include "train/options/option_values.h"

namespace finetune {
namespace {

template <typename Number>
void require(bool good, std::string_view option, const Number& value, std::string_view must) {
  if (!good) throw usage_error("--", option, " ", value, ": must be ", must);
}

void at_least(int64_t least, std::string_view option, std::optional<int64_t> value) {
  if (value) require(*value >= least, option, *value, concat("at least ", least));
}

// Options go into config.toml, and TOML is UTF-8.
void require_text(const OptionInfo& info, const std::string& value) {
  if (invalid_utf8(value) != std::string::npos) {
    throw usage_error("--", info.name, " ", in_quotes(value), ": is not valid UTF-8");
  }
}

struct ValueCheck {
  void operator()(const OptionInfo& info, const std::string& value) const {
    require_text(info, value);
  }
  void operator()(const OptionInfo& info, const std::vector<std::string>& values) const {
    for (const auto& value : values) require_text(info, value);
  }
  void operator()(const OptionInfo& info, double value) const {
    require(std::isfinite(value), info.name, value, "a finite number");
  }
  template <typename Other>
  void operator()(const OptionInfo&, const Other&) const {}
};

std::optional<ConfigValue> value_of(const std::vector<ConfigItem>& items, std::string_view name) {
  const auto found = std::find_if(items.begin(), items.end(),
                                  [&](const ConfigItem& item) { return item.name == name; });
  return found == items.end() ? std::nullopt : std::optional(found->value);
}

}  // namespace

void validate(const TrainOptions& o) {
  if (o.model.empty()) throw usage_error("--model is required: a model directory");
  if (o.train.empty()) throw usage_error("--train is required: one or more data files");
  if (o.output.empty()) throw usage_error("--output is required: the directory of the run");
  for_each_option(o, ValueCheck());
  if (!o.eval.empty() && o.eval_fraction != 0) {
    throw usage_error("--eval and --eval-fraction exclude each other");
  }
  constexpr std::string_view share = "at least 0 and below 1";
  require(o.eval_fraction >= 0 && o.eval_fraction < 1, "eval-fraction", o.eval_fraction, share);
  require(o.epochs > 0 && o.epochs <= 1e6, "epochs", o.epochs, "above 0 and at most 1000000");
  at_least(1, "max-steps", o.max_steps);
  require(o.batch_size >= 1 && o.batch_size <= (1 << 24), "batch-size", o.batch_size,
          "between 1 and 16777216");
  at_least(1, "micro-batch-tokens", o.micro_batch_tokens);
  require(o.learning_rate >= 0 && o.learning_rate < 1e3, "lr", o.learning_rate,
          "at least 0 and below 1000");
  require(o.warmup_ratio >= 0 && o.warmup_ratio <= 1, "warmup-ratio", o.warmup_ratio,
          "between 0 and 1");
  at_least(0, "warmup-steps", o.warmup_steps);
  require(o.weight_decay >= 0, "weight-decay", o.weight_decay, "at least 0");
  require(o.adam_beta1 >= 0 && o.adam_beta1 < 1, "adam-beta1", o.adam_beta1, share);
  require(o.adam_beta2 >= 0 && o.adam_beta2 < 1, "adam-beta2", o.adam_beta2, share);
  require(float(o.adam_epsilon) > 0, "adam-epsilon", o.adam_epsilon,
          "above 0 (in single precision)");
  require(o.max_grad_norm >= 0, "max-grad-norm", o.max_grad_norm, "at least 0");
  if (o.dropout) require(*o.dropout >= 0 && *o.dropout < 1, "dropout", *o.dropout, share);
  require(o.label_smoothing >= 0 && o.label_smoothing < 1, "label-smoothing", o.label_smoothing,
          share);
  require(o.layer_lr_decay > 0 && o.layer_lr_decay <= 1, "layer-lr-decay", o.layer_lr_decay,
          "above 0 and at most 1");
  at_least(1, "max-length", o.max_length);
  at_least(0, "doc-stride", o.doc_stride);
  at_least(1, "n-best", o.n_best);
  at_least(1, "max-answer-length", o.max_answer_length);
  at_least(1, "max-train-samples", o.max_train_samples);
  at_least(1, "max-eval-samples", o.max_eval_samples);
  at_least(1, "eval-every", o.eval_every);
  at_least(1, "save-every", o.save_every);
  at_least(1, "keep-checkpoints", o.keep_checkpoints);
  at_least(0, "early-stopping", o.early_stopping);
  at_least(1, "log-every", o.log_every);
  if (o.threads) {
    require(*o.threads >= 1 && *o.threads <= kMostThreads, "threads", *o.threads,
            concat("between 1 and ", kMostThreads));
  }
  if (o.virtual_shards) {
    require(*o.virtual_shards >= 1 && *o.virtual_shards <= kMostVirtualShards, "virtual-shards",
            *o.virtual_shards, concat("between 1 and ", kMostVirtualShards));
  }
  if (o.regression && !o.multi_label.empty()) {
    throw usage_error("--regression and --multi-label exclude each other");
  }
  if (o.regression &&
      (o.class_weights != "none" || o.label_smoothing != 0 || o.ignore_unknown_labels)) {
    throw usage_error(
        "--regression has no classes: leave out --class-weights, --label-smoothing and "
        "--ignore-unknown-labels");
  }
  if (o.resume && o.overwrite) throw usage_error("--resume and --overwrite exclude each other");
  if ((o.early_stopping > 0 || !o.best_metric.empty()) && o.eval.empty() && o.eval_fraction == 0) {
    throw usage_error(o.early_stopping > 0 ? "--early-stopping" : "--best-metric",
                      " needs evaluation data: give --eval or --eval-fraction");
  }
  if (!o.tolerances.empty() && o.baseline.empty()) {
    throw usage_error("--tolerance needs --baseline, the metrics.json to compare with");
  }
  require(o.bucket_mb > 0 && o.bucket_mb <= 1e6, "bucket-mb", o.bucket_mb,
          "above 0 and at most 1000000");
  if (!o.time_limit.empty()) parse_duration(o.time_limit, "--time-limit");
  comm_timeout_seconds(o);
  for (const std::string& text : o.assertions) parse_assertion(text);
}

void require_options_of(TaskKind kind, const TrainOptions& options) {
  const std::vector<ConfigItem> given = config_items(options),
                                defaults = config_items(TrainOptions());
  std::vector<std::string> others;
  for_each_option(options, [&](const OptionInfo& info, const auto&) {
    if (!info.task || *info.task == kind) return;
    if (value_of(given, info.name) != value_of(defaults, info.name)) {
      others.push_back(concat("--", info.name));
    }
  });
  if (others.empty()) return;
  const bool qa = kind == TaskKind::qa;
  throw usage_error(join(others, ", "), others.size() == 1 ? " is" : " are", " for ",
                    qa ? "classification" : "question answering", " alone: the task is ",
                    qa ? "qa" : "classification",
                    options.task.empty() ? concat(", as ", options.train.at(0), " shows") : "");
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
  t.skip_bad_rows = o.skip_bad_rows;
  t.max_length = o.max_length.value_or(0);
  t.text_columns = o.text_columns;
  t.text_pair_column = o.text_pair_column;
  t.label_column = o.label_column;
  t.multi_label_separator = o.multi_label;
  t.regression = o.regression;
  t.balanced_class_weights = o.class_weights == "balanced";
  t.label_smoothing = o.label_smoothing;
  t.ignore_unknown_labels = o.ignore_unknown_labels;
  t.doc_stride = o.doc_stride;
  t.n_best = o.n_best;
  t.max_answer_length = o.max_answer_length;
  t.null_threshold = o.null_threshold;
  t.squad_version = o.squad_version == "auto" ? 0 : o.squad_version == "1" ? 1 : 2;
  return t;
}

}  // namespace finetune

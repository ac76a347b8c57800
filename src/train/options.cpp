#include "train/options.h"

#include "core/error.h"

namespace finetune {
namespace {

void require(bool good, std::string_view option, double value, std::string_view must) {
  if (!good) throw usage_error("--", option, " ", value, ": must be ", must);
}

}  // namespace

void validate(const TrainOptions& o) {
  if (o.model.empty()) throw usage_error("--model is required: a model directory");
  if (o.train.empty()) throw usage_error("--train is required: one or more data files");
  if (o.output.empty()) throw usage_error("--output is required: the directory of the run");
  if (!o.eval.empty() && o.eval_fraction != 0) {
    throw usage_error("--eval and --eval-fraction exclude each other");
  }
  require(o.eval_fraction >= 0 && o.eval_fraction < 1, "eval-fraction", o.eval_fraction,
          "at least 0 and below 1");
  require(o.epochs > 0 && o.epochs <= 1e6, "epochs", o.epochs, "above 0");
  require(o.max_steps >= 0, "max-steps", double(o.max_steps), "above 0");
  require(o.batch_size >= 1 && o.batch_size <= (1 << 24), "batch-size", double(o.batch_size),
          "at least 1");
  require(o.micro_batch_tokens >= 0, "micro-batch-tokens", double(o.micro_batch_tokens),
          "at least 1");
  require(o.learning_rate >= 0 && o.learning_rate < 1e3, "lr", o.learning_rate, "at least 0");
  require(o.warmup_ratio >= 0 && o.warmup_ratio <= 1, "warmup-ratio", o.warmup_ratio,
          "between 0 and 1");
  require(o.weight_decay >= 0, "weight-decay", o.weight_decay, "at least 0");
  require(o.adam_beta1 >= 0 && o.adam_beta1 < 1, "adam-beta1", o.adam_beta1, "at least 0 and below 1");
  require(o.adam_beta2 >= 0 && o.adam_beta2 < 1, "adam-beta2", o.adam_beta2, "at least 0 and below 1");
  require(o.adam_epsilon > 0, "adam-epsilon", o.adam_epsilon, "above 0");
  require(o.max_grad_norm >= 0, "max-grad-norm", o.max_grad_norm, "at least 0");
  require(o.dropout == -1 || (o.dropout >= 0 && o.dropout < 1), "dropout", o.dropout,
          "at least 0 and below 1");
  require(o.label_smoothing >= 0 && o.label_smoothing < 1, "label-smoothing", o.label_smoothing,
          "at least 0 and below 1");
  require(o.layer_lr_decay > 0 && o.layer_lr_decay <= 1, "layer-lr-decay", o.layer_lr_decay,
          "above 0 and at most 1");
  require(o.max_length >= 0, "max-length", double(o.max_length), "at least 1");
  require(o.doc_stride >= 0, "doc-stride", double(o.doc_stride), "at least 0");
  require(o.n_best >= 1, "n-best", double(o.n_best), "at least 1");
  require(o.max_answer_length >= 1, "max-answer-length", double(o.max_answer_length), "at least 1");
  require(o.max_train_samples >= 0, "max-train-samples", double(o.max_train_samples), "at least 1");
  require(o.max_eval_samples >= 0, "max-eval-samples", double(o.max_eval_samples), "at least 1");
  require(o.eval_every >= 0, "eval-every", double(o.eval_every), "at least 1");
  require(o.save_every >= 0, "save-every", double(o.save_every), "at least 1");
  require(o.keep_checkpoints >= 1, "keep-checkpoints", double(o.keep_checkpoints), "at least 1");
  require(o.early_stopping >= 0, "early-stopping", double(o.early_stopping), "at least 0");
  require(o.log_every >= 1, "log-every", double(o.log_every), "at least 1");
  require(o.threads >= 0 && o.threads <= 4096, "threads", double(o.threads), "between 1 and 4096");
  require(o.virtual_shards >= 0 && o.virtual_shards <= 65536, "virtual-shards",
          double(o.virtual_shards), "between 1 and 65536");
  if (o.regression && !o.multi_label.empty()) {
    throw usage_error("--regression and --multi-label exclude each other");
  }
  if (o.regression && (o.class_weights != "none" || o.label_smoothing != 0)) {
    throw usage_error("--regression has no classes: leave out --class-weights and --label-smoothing");
  }
  if (o.resume && o.overwrite) throw usage_error("--resume and --overwrite exclude each other");
  if ((o.early_stopping > 0 || !o.best_metric.empty()) && o.eval.empty() && o.eval_fraction == 0) {
    throw usage_error(o.early_stopping > 0 ? "--early-stopping" : "--best-metric",
                      " needs evaluation data: give --eval or --eval-fraction");
  }
  if (!o.tolerances.empty() && o.baseline.empty()) {
    throw usage_error("--tolerance needs --baseline, the metrics.json to compare with");
  }
  if (o.precision == "bf16") {
    throw usage_error("--precision bf16: this version computes in fp32 only");
  }
}

TaskOptions task_options(const TrainOptions& o) {
  TaskOptions t;
  t.train_files.assign(o.train.begin(), o.train.end());
  t.eval_files.assign(o.eval.begin(), o.eval.end());
  t.eval_fraction = o.eval_fraction;
  t.seed = o.seed;
  t.max_train_samples = o.max_train_samples;
  t.max_eval_samples = o.max_eval_samples;
  t.skip_bad_rows = o.skip_bad_rows;
  t.max_length = o.max_length;
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

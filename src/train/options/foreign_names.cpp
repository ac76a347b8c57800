// The table of other programs' option names.
#include "train/options/foreign_names.h"

#include <algorithm>

#include "core/text/text.h"

namespace finetune {
namespace {

struct ForeignName {
  std::string_view name;
  std::string_view own;   // without dashes; empty: there is none
  std::string_view rest;  // a value behind it, or why there is none
};

// Of several rows of a name the first whose option the command has counts.
constexpr ForeignName kForeignNames[] = {
    {"model_name_or_path", "model", ""},
    {"pretrained_model_name_or_path", "model", ""},
    {"train_file", "train", ""},
    {"train_file", "text", ""},
    {"mlm_probability", "mask-probability", ""},
    {"line_by_line", "text", " (a text a line is how files are read)"},
    {"validation_file", "eval", ""},
    {"validation_file", "data", ""},
    {"test_file", "data", ""},
    {"test_file", "input", ""},
    {"output_dir", "output", ""},
    {"overwrite_output_dir", "overwrite", ""},
    {"resume_from_checkpoint", "resume", ""},
    {"task_name", "task", ""},
    {"text_column_name", "text-column", ""},
    {"text_column_names", "text-column", ""},
    {"label_column_name", "label-column", ""},
    {"max_seq_length", "max-length", ""},
    {"max_predict_samples", "max-eval-samples", ""},
    {"learning_rate", "lr", ""},
    {"num_train_epochs", "epochs", ""},
    {"num_epochs", "epochs", ""},
    {"per_device_train_batch_size", "batch-size", ""},
    {"per_gpu_train_batch_size", "batch-size", ""},
    {"train_batch_size", "batch-size", ""},
    {"gradient_accumulation_steps", "batch-size", " (of an update, over all processes)"},
    {"per_device_eval_batch_size", "micro-batch-tokens", " (for training and evaluation)"},
    {"per_device_eval_batch_size", "batch-size", ""},
    {"lr_scheduler_type", "schedule", ""},
    {"label_smoothing_factor", "label-smoothing", ""},
    {"warmup_proportion", "warmup-ratio", ""},
    {"hidden_dropout_prob", "dropout", ""},
    {"eval_strategy", "eval-every", " N"},
    {"evaluation_strategy", "eval-every", " N"},
    {"eval_steps", "eval-every", ""},
    {"save_strategy", "save-every", " N"},
    {"save_steps", "save-every", ""},
    {"save_total_limit", "keep-checkpoints", ""},
    {"logging_steps", "log-every", ""},
    {"logging_strategy", "log-every", " N"},
    {"metric_for_best_model", "best-metric", ""},
    {"early_stopping_patience", "early-stopping", ""},
    {"load_best_model_at_end", "", "the best model by --best-metric is the one exported"},
    {"report_to", "tensorboard", ""},
    {"fp16", "precision", " bf16"},
    {"bf16", "precision", " bf16"},
    {"no_cuda", "device", " cpu"},
    {"use_cpu", "device", " cpu"},
    {"gradient_checkpointing", "recompute", ""},
    {"ddp_timeout", "comm-timeout", ""},
    {"ignore_mismatched_sizes", "reinit-head", ""},
    {"n_best_size", "n-best", ""},
    {"null_score_diff_threshold", "null-threshold", ""},
    {"version_2_with_negative", "squad-version", " 2"},
    {"do_train", "", "there are finetune train, evaluate and predict"},
    {"do_eval", "", "train evaluates where it has --eval"},
    {"do_predict", "", "there is finetune predict"},
    {"dataloader_num_workers", "", "data are read by all --threads"},
    {"group_by_length", "", "no batch is padded"},
    {"pad_to_max_length", "", "no batch is padded"},
};

}  // namespace

std::optional<std::string> foreign_option_hint(
    std::string_view name, const std::function<bool(std::string_view own)>& has) {
  std::string key(name);
  std::replace(key.begin(), key.end(), '-', '_');
  for (const ForeignName& row : kForeignNames) {
    if (row.name != key) continue;
    if (row.own.empty()) return concat("--", row.name, " is not needed here: ", row.rest);
    if (has(row.own)) return concat("--", row.name, " is --", row.own, row.rest, " here");
  }
  return std::nullopt;
}

}  // namespace finetune

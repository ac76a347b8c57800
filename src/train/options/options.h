// The options of `finetune train`, declared once.
// The command line, config.toml and the check on --resume are loops over for_each_option. An
// optional without a value is an option that was not given.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/threads/parallel.h"
#include "data/plan.h"
#include "distributed/pipeline/pipeline_schedule.h"
#include "tasks/registry.h"
#include "train/options/option_info.h"
#include "train/options/train_options.h"
#include "train/schedule.h"

namespace finetune {

// Calls visit(const OptionInfo&, member&) for every option, in the order of --help.
template <typename Options, typename Visit>
void for_each_option(Options& o, Visit&& visit) {
  using enum OptionRole;
  constexpr std::string_view data = "Data", model = "Model", optimizer = "Optimization",
                             evaluation = "Evaluation and checkpoints", machine = "Machine",
                             gate = "Regression gates", output = "Output", task = "Task";
  visit({"task", task, result,
         "what to learn; qa: question answering, mlm: masked words (default: by the data)",
         task_words()},
        o.task);
  visit({"model", model, run,
         "required: directory of a model or a run, a weight file in it, or an id in the Hugging "
         "Face cache",
         "", "DIR|FILE|ID"},
        o.model);
  visit({"reinit-head", model, result, "start with a new head, whatever head --model has"},
        o.reinit_head);
  visit({"train", data, run, "required: training files: CSV, TSV, JSONL, or SQuAD JSON", "",
         "FILE..."},
        o.train);
  visit({"eval", data, run, "evaluation files", "", "FILE..."}, o.eval);
  visit({"eval-fraction", data, result, below(1),
         "without --eval: hold out this share of the training rows, drawn by --seed"},
        o.eval_fraction);
  visit({"eval-group", data, result,
         "--eval-fraction holds out whole groups, rows with one value in this column", "", "NAME"},
        o.eval_group);
  visit({"eval-split", data, result,
         "how --eval-fraction draws: by labels, equal texts together, or by chance",
         "stratified|distinct|random"},
        o.eval_split);
  visit({"text-column", data, result,
         "columns of the text, joined by a space (default: text, or the only column left)", "",
         "NAME[,NAME...]"},
        o.text_columns);
  visit({"text-pair-column", data, result, "column of the second text of a pair", "", "NAME"},
        o.text_pair_column);
  visit({"label-column", data, result, "column of the label", "", "NAME"}, o.label_column);
  visit({"multi-label", data, result, "a row may have several labels, separated by SEP", "", "SEP"},
        o.multi_label);
  visit({"regression", data, result, "labels are numbers"}, o.regression);
  visit({"no-standardize", data, result,
         "learn the numbers of --regression as they are, not (number - mean) / scale"},
        o.no_standardize);
  visit({"max-length", data, result, at_least(1), "longest input in tokens (default: 128; qa 384)"},
        o.max_length);
  visit({"long-text", data, result,
         "a text beyond --max-length is cut at its end, or read in overlapping windows",
         kLongTextWords},
        o.long_text);
  visit({"window-stride", data, result, between(0, double(kMostStride)),
         "tokens that neighbouring windows share (half a window at most)"},
        o.window_stride);
  visit({"max-windows", data, result, between(1, double(kMostWindows)),
         "windows of a text; it is cut behind them"},
        o.max_windows);
  visit({"doc-stride", data, result, at_least(0), "overlap of neighbouring windows in tokens"},
        o.doc_stride);
  visit({"n-best", data, result, at_least(1), "answers kept for each question"}, o.n_best);
  visit({"max-answer-length", data, result, at_least(1), "longest answer in tokens"},
        o.max_answer_length);
  visit({"null-threshold", data, result,
         "give no answer where the no-answer score leads the best answer's by more than this"},
        o.null_threshold);
  visit({"squad-version", data, result,
         "rules of scoring; auto: 2 where the data has unanswerable questions", "auto|1|2"},
        o.squad_version);
  visit({"mask-probability",
         data,
         result,
         {.least = 0, .most = 1, .above_least = true},
         "share of the tokens that are hidden"},
        o.mask_probability);
  visit({"no-whole-words", data, result, "hide pieces of words, each by itself"}, o.no_whole_words);
  visit({"distinct", data, result, "keep one of the texts that have the same tokens"}, o.distinct);
  visit({"max-train-samples", data, result, at_least(1),
         "use the first N training examples (qa: questions)"},
        o.max_train_samples);
  visit({"max-eval-samples", data, result, at_least(1),
         "use the first N evaluation examples (qa: questions)"},
        o.max_eval_samples);
  visit({"delimiter", data, result, "separator of values in CSV; C: one character", "",
         "auto|comma|semicolon|tab|bar|C"},
        o.delimiter);
  visit({"encoding", data, result,
         "text encoding: auto (UTF-8 or UTF-16), windows-1252 or another that iconv knows", "",
         "NAME"},
        o.encoding);
  visit({"skip-bad-rows", data, result, "drop unusable rows and say how many, instead of failing"},
        o.skip_bad_rows);
  visit({"ignore-unknown-labels", data, result,
         "count evaluation labels missing from training as wrong, instead of failing"},
        o.ignore_unknown_labels);
  visit({"normalize-labels", data, result,
         "join labels that differ only in case, white space, invisible or composed characters"},
        o.normalize_labels);

  visit({"recipe", optimizer, result,
         "--epochs, --lr, ...: Hugging Face's, or by the data (default: auto; hf if --lr and "
         "--epochs are given)",
         kRecipeWords},
        o.recipe);
  visit({"epochs", optimizer, result, above(0, 1e6),
         "passes over the training data (hf: 3; auto: by the rows)"},
        o.epochs);
  visit({"max-steps", optimizer, result, at_least(1),
         "stop after N updates (default: --epochs decides)"},
        o.max_steps);
  visit({"batch-size", optimizer, result, between(1, 1 << 24),
         "sequences (qa: windows) per update, over all processes (hf: 32; auto: by the rows)"},
        o.batch_size);
  visit({"micro-batch-tokens", optimizer, result, at_least(1),
         "most tokens at once in training (auto: by the model's size and a GPU's memory)", "auto"},
        o.micro_batch_tokens);
  visit({"micro-batches", optimizer, result, between(1, kMostMicroBatches),
         "instead of --micro-batch-tokens: M parts of about equal tokens per virtual shard (--pp: "
         "about 4 a stage)",
         "", "M"},
        o.micro_batches);
  visit({"lr", optimizer, result, below(1e3), "learning rate (hf: 5e-5; auto: by the model)"},
        o.learning_rate);
  visit({"schedule", optimizer, result, "learning-rate schedule", kScheduleWords}, o.schedule);
  visit({"warmup-ratio", optimizer, result, between(0, 1),
         "share of the steps in which the learning rate rises from 0 (default: 0.1)"},
        o.warmup_ratio);
  visit({"warmup-steps", optimizer, result, at_least(0),
         "the same, as a number of steps; overrides --warmup-ratio"},
        o.warmup_steps);
  visit(
      {"weight-decay", optimizer, result, at_least(0), "AdamW decay, not on biases and LayerNorm"},
      o.weight_decay);
  visit({"adam-beta1", optimizer, result, below(1), "AdamW beta1"}, o.adam_beta1);
  visit({"adam-beta2", optimizer, result, below(1), "AdamW beta2"}, o.adam_beta2);
  visit({"adam-epsilon", optimizer, result, kPositiveFloat, "AdamW epsilon"}, o.adam_epsilon);
  visit({"max-grad-norm", optimizer, result, at_least(0),
         "gradients are scaled down to this norm; 0: no clipping"},
        o.max_grad_norm);
  visit({"dropout", optimizer, result, below(1),
         "dropout everywhere in the model; 0: none (default: as in the model's config)", "", "P"},
        o.dropout);
  visit({"class-weights", optimizer, result, "balanced makes rare classes count more",
         "none|balanced"},
        o.class_weights);
  visit({"label-smoothing", optimizer, result, below(1),
         "share of the target spread over all classes"},
        o.label_smoothing);
  visit(
      {"layer-lr-decay", optimizer, result, above(0, 1),
       "multiplies a layer's learning rate, once for each layer it is below the head (default: 1)"},
      o.layer_lr_decay);
  visit({"freeze", optimizer, result,
         "do not train the embeddings, or with N the embeddings and the first N layers", "",
         "none|embeddings|N"},
        o.freeze);
  visit({"seed", optimizer, result,
         "random seed of shuffling, dropout, new weights and held-out rows"},
        o.seed);
  visit({"no-shuffle", optimizer, result, "keep the order of the file"}, o.no_shuffle);
  visit({"virtual-shards", optimizer, result, between(1, kMostVirtualShards),
         "sum gradients as K processes would, on any number of them (default: the processes; --pp, "
         "--tp: replicas)",
         "", "K"},
        o.virtual_shards);

  visit({"eval-every", evaluation, result, at_least(1),
         "evaluate every N steps (default: each epoch)"},
        o.eval_every);
  visit({"save-every", evaluation, run, at_least(1),
         "checkpoint every N steps (default: each epoch)"},
        o.save_every);
  visit({"keep-checkpoints", evaluation, run, at_least(0),
         "keep the N newest checkpoints and the best (default: 2 during the run, none after it)"},
        o.keep_checkpoints);
  visit({"best-metric", evaluation, result,
         "metric that chooses the exported model (default: the task's)", "", "METRIC"},
        o.best_metric);
  visit({"early-stopping", evaluation, result, at_least(0),
         "stop after N evaluations without improvement; 0: off"},
        o.early_stopping);
  visit({"no-calibration", evaluation, run,
         "do not fit the exported model's probabilities to the evaluation rows"},
        o.no_calibration);
  visit({"tune-thresholds", evaluation, run,
         "with --multi-label: each label's threshold with the best F1 on evaluation rows"},
        o.tune_thresholds);
  visit(
      {"ngram-mix", evaluation, run,
       "mix the model with a linear one on n-grams (auto: yes with --recipe auto)", "auto|yes|no"},
      o.ngram_mix);
  visit({"log-every", evaluation, run, at_least(1), "write every Nth step to metrics.jsonl"},
        o.log_every);
  visit({"tensorboard", evaluation, run, "write event files for TensorBoard into --output, too"},
        o.tensorboard);
  visit({"no-ngram-baseline", evaluation, run,
         "leave out the linear model on n-grams that the result is compared with"},
        o.no_ngram_baseline);

  visit({"device", machine, run,
         "where to compute; auto: the GPU where one can be used, else the CPU", "auto|cpu|cuda"},
        o.device);
  visit({"precision", machine, result,
         "arithmetic; auto: bf16 where the machine is fast at it, else fp32", "auto|fp32|bf16"},
        o.precision);
  visit({"threads", machine, run, between(1, kMostThreads),
         "threads (all: the cores this process may use)", "all"},
        o.threads);
  visit({"recompute", machine, run,
         "compute activations again in the backward pass: less memory, same result"},
        o.recompute);
  visit({"offload-activations", machine, run, between(1, 4096),
         "GPU, with --recompute: keep layers' inputs in host memory, back N layers ahead (without "
         "N: 4)",
         "", "[N]", 4},
        o.offload_activations);
  visit({"shard-optimizer", machine, run,
         "each process keeps a part of the optimizer's state (always so on the CPU)"},
        o.shard_optimizer);
  visit({"no-deterministic", machine, run,
         "GPUs add gradients in the order that is fastest: results differ from run to run"},
        o.no_deterministic);
  visit({"bucket-mb", machine, run, above(0, 1e6),
         "between GPUs: MiB of gradients sent together, during the backward pass"},
        o.bucket_mb);
  visit({"comm-precision", machine, run, "between GPUs: precision in which gradients are sent",
         "fp32|bf16"},
        o.comm_precision);
  visit({"comm-timeout", machine, run,
         "under mpirun: how long a process waits for another before the job ends; 0: for ever", "",
         "TIME"},
        o.comm_timeout);
  visit({"time-limit", machine, session,
         "stop cleanly after this time (90s, 10m, 1h30m): checkpoint and exit code 8", "", "TIME"},
        o.time_limit);

  visit({"tensor-shards", kLayoutGroup, result, between(1, kMostRanks),
         "cut each layer's heads and feed-forward columns into V parts, summed in a fixed order "
         "(default: --tp)",
         "", "V"},
        o.tensor_shards);
  visit({"tp", kLayoutGroup, run, between(1, kMostRanks),
         "tensor parallelism: N processes (tensor ranks) share each layer's heads and feed-forward "
         "columns"},
        o.tp);
  visit({"pp", kLayoutGroup, run, between(1, kMostRanks),
         "pipeline parallelism: N stages, each with some of the layers"},
        o.pp);
  visit(
      {"placement", kLayoutGroup, run,
       "order of replica (D), stage (P), tensor rank (T), last fastest; cluster: DPT, spread: TPD",
       "", "cluster|spread|ORDER"},
      o.placement);
  visit({"pipeline-schedule", kLayoutGroup, run, "order of a stage's forward and backward passes",
         kPipelineWords},
        o.pipeline_schedule);
  visit({"chunks", kLayoutGroup, run, between(1, 4096),
         "with --pipeline-schedule interleaved: chunks of layers per stage (default: 2)"},
        o.chunks);
  visit({"stages", kLayoutGroup, run,
         "layers of each stage; auto: split so that the slowest stage is as fast as possible", "",
         "auto|7,5"},
        o.stages);

  visit({"assert", gate, run,
         "fail with exit 7 unless a final metric holds: \"eval_f1>=88\"; repeatable", "",
         "METRIC>=X"},
        o.assertions);
  visit({"baseline", gate, run,
         "earlier runs (metrics.json or directory) for --tolerance; of several, their mean and its "
         "noise",
         "", "FILE..."},
        o.baselines);
  visit({"tolerance", gate, run,
         "how much worse than --baseline a metric may be: eval_f1=0.3, or eval_f1=1%; repeatable",
         "", "METRIC=X"},
        o.tolerances);
  visit({"junit", gate, session, "write the gates as a JUnit file, whether they hold or not", "",
         "FILE"},
        o.junit);

  visit({"output", output, run, "required: directory of the run; must be new or empty", "", "DIR"},
        o.output);
  visit({"overwrite", output, session, "replace an earlier run in --output"}, o.overwrite);
  visit({"resume", output, session,
         "continue the run in --output from its newest checkpoint; without --model or data, by its "
         "config.toml"},
        o.resume);
  visit(
      {"json", output, session, "print the run and its final metrics as one JSON object, one line"},
      o.json);
  visit({"quiet", output, session, "no log on standard error, only warnings"}, o.quiet);
  visit({"no-progress", output, session, "no progress line"}, o.no_progress);
}

// Error(usage) naming the option for a number out of its range.
void require_inside(const OptionInfo& info, double value);
void require_inside(const OptionInfo& info, int64_t value);

// Error(usage) for values that are out of range or, in validate(), do not go together.
void validate_values(const TrainOptions& options);
// Error(usage): an option of windows without --long-text windows.
void validate_windows(const TrainOptions& options);
void validate_eval_group(const TrainOptions& options);
void validate(const TrainOptions& options);
// --device, where `auto` is the CPU for masked words.
std::string wanted_device(const TrainOptions& options);

// Whether a run of labels with these options is mixed with n-grams, if that makes it better. With
// auto there is no mix where it cannot be.
bool mixes_with_ngrams(const TrainOptions& options);

// Error(usage) naming each option that is for another task than `kind` and has another value than
// its default.
void require_options_of(TaskKind kind, const TrainOptions& options);

// All but the files.
TaskOptions task_options(const TrainOptions& options);
// As resolved: --micro-batches, or --micro-batch-tokens.
MicroBatching micro_batching(const TrainOptions& options);
int64_t bucket_bytes(const TrainOptions& options);
double comm_timeout_seconds(const TrainOptions& options);  // 0: for ever
DType wire_type(const TrainOptions& options);

}  // namespace finetune

// Checks options that depend on each other, and derives settings from options. The table of options
// is in train/options/table.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "data/plan.h"
#include "tasks/registry.h"
#include "tasks/task.h"
#include "train/options/option_row.h"
#include "train/options/train_options.h"

namespace finetune {

// Error(usage) if values are out of range. validate() also checks that they go together.
void validate_values(const TrainOptions& options);
// Error(usage): an option for windows was given without --long-text windows.
void validate_windows(const TrainOptions& options);
void validate_eval_group(const TrainOptions& options);
void validate(const TrainOptions& options);
// --device, but for masked words `auto` becomes `cpu`.
std::string wanted_device(const TrainOptions& options);

// Whether each row has one label: neither a number nor several labels.
bool has_one_label(const TrainOptions& options);

// Whether some rows are set apart to measure the model, or all are with --folds.
bool is_evaluated(const TrainOptions& options);

// Whether these options ask for a mix with n-grams, which is used if it improves the model. With
// --ngram-mix auto this is false if a mix is impossible.
bool mixes_with_ngrams(const TrainOptions& options);

// Error(usage) naming each option that is not for the task `kind` and does not have its default.
void require_options_of(TaskKind kind, const TrainOptions& options);

// Reads resolved options: --micro-batches, or else --micro-batch-tokens.
MicroBatching micro_batching(const TrainOptions& options);
int64_t bucket_bytes(const TrainOptions& options);
double comm_timeout_seconds(const TrainOptions& options);  // 0: no limit
DType wire_type(const TrainOptions& options);

// Error(usage) for options of pipelines and micro-batches that are invalid or exclude each other.
// Does not check them against the processes or the model.
void validate_pipeline(const TrainOptions& options);
// Checks --offload-activations, which needs a GPU and --recompute. `may_be_gpu`: whether --device
// auto can choose a GPU.
void validate_offload(const TrainOptions& options, bool may_be_gpu);

// Copies the options that tasks read. Leaves out the names of files.
TaskOptions task_options(const TrainOptions& options);

// Copies only the options that were given; `to` keeps a trained model's values for all others.
void apply_given(std::span<const GivenOption> given, const TrainOptions& options, TaskOptions& to);

}  // namespace finetune

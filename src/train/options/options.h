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

// Error(usage) for values that are out of range or, in validate(), do not go together.
void validate_values(const TrainOptions& options);
// Error(usage): an option of windows without --long-text windows.
void validate_windows(const TrainOptions& options);
void validate_eval_group(const TrainOptions& options);
void validate(const TrainOptions& options);
// --device, where `auto` is the CPU for masked words.
std::string wanted_device(const TrainOptions& options);

// Whether rows of labels have one each: neither numbers nor several labels.
bool has_one_label(const TrainOptions& options);

// Whether a run of labels with these options is mixed with n-grams, if that makes it better. With
// auto there is no mix where it cannot be.
bool mixes_with_ngrams(const TrainOptions& options);

// Error(usage) naming each option that is for another task than `kind` and has another value than
// its default.
void require_options_of(TaskKind kind, const TrainOptions& options);

// As resolved: --micro-batches, or --micro-batch-tokens.
MicroBatching micro_batching(const TrainOptions& options);
int64_t bucket_bytes(const TrainOptions& options);
double comm_timeout_seconds(const TrainOptions& options);  // 0: for ever
DType wire_type(const TrainOptions& options);

// Error(usage) for options of a pipeline that exclude each other. Does not check world and model.
void validate_pipeline(const TrainOptions& options);
// The same for --offload-activations, which needs a GPU and --recompute. `may_be_gpu`: whether
// --device auto is one.
void validate_offload(const TrainOptions& options, bool may_be_gpu);

// The options that tasks read, without the files.
TaskOptions task_options(const TrainOptions& options);

// Sets the given options alone, over what `to` has from a trained model.
void apply_given(std::span<const GivenOption> given, const TrainOptions& options, TaskOptions& to);

}  // namespace finetune

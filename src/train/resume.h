// Finds the checkpoint that --resume continues, and checks whether it may.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "train/checkpoint/checkpoint_store.h"
#include "train/options/options.h"
#include "train/run/gates.h"
#include "train/run/run_directory.h"

namespace finetune {

// Sets options that were not given to their values in `kept` (the text of a config.toml), if they
// follow from the data and the model (task, maximum length, shards, ...). Returns these options'
// names. Error(usage) naming each option that differs and changes the result; for --train and
// --eval it compares the number of files. Error(model): `kept` was not written by a run.
std::vector<std::string> continue_with_options(TrainOptions& options, const std::string& kept,
                                               const std::string& kept_where);

// The same with a checkpoint's options. Error(usage) also if its steps were computed with a
// different loss (named_loss).
std::vector<std::string> continue_from(const FoundCheckpoint& found, TrainOptions& options);

// Throws Error(model) that blames the checkpoint if `error` is a usage error about an option in
// `adopted`, since that value comes from the checkpoint and not from the user.
void blame_checkpoint(const Error& error, const std::filesystem::path& checkpoint,
                      const std::vector<std::string>& adopted);

// Returns the differences in options that prevent continuing the run of `kept`, each as "lr (5e-05
// there, 0.0001 now)". Error(model) as in continue_with_options.
std::vector<std::string> option_differences(TrainOptions options, const std::string& kept,
                                            const std::string& kept_where);

// Returns the checkpoint to continue. If the best model's own checkpoint is missing or damaged, the
// state has no best step. Then the search for the best starts over, and the log says so.
std::optional<FoundCheckpoint> checkpoint_to_continue(const RunDirectory& directory);

// CheckpointState::loss: the name of the loss with class weights and label smoothing together,
// which earlier versions of this program compute differently. Empty for all other options.
std::string named_loss(const TrainOptions& options);
// Error(usage): the checkpoint's steps were computed with another loss than `options` ask for.
void require_same_loss(const TrainOptions& options, const FoundCheckpoint& found);

// For a run that has ended: compares the options with its config.toml and returns the assertions.
// Error(usage): options differ, or the run does not have the metric of an assertion.
std::vector<Assertion> finished_assertions(const RunDirectory& directory,
                                           const TrainOptions& options);
// Reads the SHA-256 of the run's data and model from run.json. Error(model) if one is missing.
void take_finished_sums(const RunDirectory& directory, CheckpointState& state);

// The gates of --assert and --baseline. Error(usage): a metric is not in `available`.
std::vector<Assertion> read_assertions(const TrainOptions& options,
                                       const std::vector<std::string>& available);

// "cpu" or "cuda", from a backend's code path.
std::string device_of(std::string_view code_path);
// Logs where the run continues (null: there is no checkpoint). Warns if the state was computed on
// another code path: the result then differs from that of an uninterrupted run.
void describe_continuation(const std::filesystem::path* checkpoint, const CheckpointState& state,
                           const std::string& code_path);

}  // namespace finetune

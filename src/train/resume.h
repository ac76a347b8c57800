// What --resume continues, and whether it may.
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

// Takes over from `kept` (a config.toml's text) what was not given and resolves to the same for the
// same data and model (task, maximum length, shards, ...); gives the names of these options.
// Error(usage) naming each option that changes the result and differs; of --train and --eval the
// number of files counts. Error(model) if `kept` is no text that a run has written.
std::vector<std::string> continue_with_options(TrainOptions& options, const std::string& kept,
                                               const std::string& kept_where);

// The same with a checkpoint's options. Error(usage) too if its steps were computed with another
// loss (named_loss).
std::vector<std::string> continue_from(const FoundCheckpoint& found, TrainOptions& options);

// An option that nobody gave, but this checkpoint, is no mistake of usage: Error(model) in place of
// an `error` that is one and names an option of `adopted`.
void blame_checkpoint(const Error& error, const std::filesystem::path& checkpoint,
                      const std::vector<std::string>& adopted);

// What keeps a run with these options from continuing the one whose config.toml's text is `kept`:
// "lr (5e-05 there, 0.0001 now)" for each. Error(model) as above.
std::vector<std::string> option_differences(TrainOptions options, const std::string& kept,
                                            const std::string& kept_where);

// The checkpoint to continue. If the best model's own checkpoint is gone or damaged, the state
// comes back without a best step, so that evaluation starts over, and the log says so.
std::optional<FoundCheckpoint> checkpoint_to_continue(const RunDirectory& directory);

// CheckpointState::loss: names the loss of class weights together with label smoothing, which
// versions of this program before this name compute in another way. Empty for all other options.
std::string named_loss(const TrainOptions& options);
// Error(usage) if the checkpoint's steps were computed with another loss than `options` have now.
void require_same_loss(const TrainOptions& options, const FoundCheckpoint& found);

// Of a run that has ended: its options are compared with config.toml; the assertions are those that
// its metrics can answer, else Error(usage).
std::vector<Assertion> finished_assertions(const RunDirectory& directory,
                                           const TrainOptions& options);
// The sums of what it was trained on, from run.json. Error(model) if they are not there.
void take_finished_sums(const RunDirectory& directory, CheckpointState& state);

// Of --assert and --baseline; Error(usage) for a metric that is not in `available`.
std::vector<Assertion> read_assertions(const TrainOptions& options,
                                       const std::vector<std::string>& available);

// "cpu" or "cuda", of a backend's code path.
std::string device_of(std::string_view code_path);
// To the log: from where a run goes on (null: there is no checkpoint), and that it is no longer
// what an undisturbed run would be where the state was computed in another way.
void describe_continuation(const std::filesystem::path* checkpoint, const CheckpointState& state,
                           const std::string& code_path);

}  // namespace finetune

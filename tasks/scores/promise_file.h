// promise.json: a promise as a file beside its model.
//
// An object: version (1), max_error, confidence, threshold, rows, automatic, wrong, answers (the
// options that change probabilities, as text), config_sha256, weights_sha256, tokenizer_sha256 (of
// the files).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"
#include "tasks/calibration.h"
#include "tasks/task.h"

namespace finetune {

inline constexpr std::string_view kPromiseFile = "promise.json";

// The model that gives the probabilities.
struct PromisedModel {
  std::filesystem::path directory;
  std::filesystem::path config;
  std::vector<std::filesystem::path> weights, tokenizer;  // files; sharded weights with their index
  std::string answers;                                    // see answers_in_words()
};

// The options that change a model's probabilities, as text.
std::string answers_in_words(const TaskOptions& options);

// Error(usage) if predict --automatic cannot leave out labels of this model.
void require_automatic(const TaskOptions& options, const EncoderConfig& config);

// Error(usage) if the model's `directory` has a promise and `overwrite` is false.
void check_promise_output(const std::filesystem::path& directory, bool overwrite);
// `promise` must have a threshold. Error(model) if the file cannot be written.
void write_promise(const PromisedModel& model, const Promise& promise);
// Removes the promise in a model's `directory`, with a warning, if there is one. Error(model) if it
// cannot be removed.
void remove_promise(const std::filesystem::path& directory);

// Error(model) if there is none, if it is damaged, or if it is for another model or other options.
Promise read_promise(const PromisedModel& model);
// The same without a look at the model; nothing if there is none.
std::optional<Promise> stored_promise(const std::filesystem::path& directory);

// "at most 5.0 % of automatic labels wrong, with 95.0 % confidence"; with a threshold also ":
// labels with a probability of at least 0.9, 54.4 % of 3,330 rows (74 of 1,811 wrong)".
std::string promise_in_words(const Promise& promise);

}  // namespace finetune

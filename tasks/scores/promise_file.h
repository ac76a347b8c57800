// promise.json: a promise as a file beside the model that it is about.
//
// An object: version (1), max_error, confidence, threshold, rows, automatic, wrong, answers (in
// words: the options that change probabilities), config_sha256, weights_sha256, tokenizer_sha256
// (of the files).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"
#include "tasks/calibration.h"
#include "tasks/task.h"

namespace finetune {

inline constexpr std::string_view kPromiseFile = "promise.json";

// The model that probabilities come from.
struct PromisedModel {
  std::filesystem::path directory;
  std::filesystem::path config;
  std::vector<std::filesystem::path> weights, tokenizer;  // files; shards with their index
  std::string answers;                                    // see answers_in_words()
};

// The options that change a model's probabilities.
std::string answers_in_words(const TaskOptions& options);

// Error(usage) if the model's labels cannot be left out by predict --automatic.
void require_automatic(const TaskOptions& options, const EncoderConfig& config);

// Error(usage) if there is a promise in a model's `directory` and `overwrite` is false.
void check_promise_output(const std::filesystem::path& directory, bool overwrite);
// `promise` must have a threshold. Error(model) if the file cannot be written.
void write_promise(const PromisedModel& model, const Promise& promise);
// Removes the promise in a model's `directory`, with a warning, if there is one. Error(model) if it
// cannot be removed.
void remove_promise(const std::filesystem::path& directory);

// Error(model) if there is none, if it is damaged, or if it is about another model or other
// options.
Promise read_promise(const PromisedModel& model);

}  // namespace finetune

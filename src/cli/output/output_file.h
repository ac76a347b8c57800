// The output of a command: a file that appears only when complete, a pipe or standard output.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/evaluator.h"

namespace finetune {

// Whether two names lead to one file, which need not exist; "-" and "" are not files.
bool is_same_file(const std::string& a, const std::string& b);

// Returns the target of a link, or `path` if it is not a link: outputs replace the target, not the
// link. Error(usage) for a broken link.
std::string link_destination(const std::string& path);

// Error(usage) for a directory, for one of the inputs, for a packed name (labels.csv.gz) and,
// without `overwrite`, for a file that exists. Allows pipes, "-" (standard output) and "".
void check_output_file(const std::string& path, const std::vector<std::string>& inputs,
                       bool overwrite);

// Error(usage) if the output would replace a file of the model in `model`, a file that the model's
// run read, or one of `labelled`.
void check_model_survives(const std::string& path, const std::filesystem::path& model,
                          const std::vector<std::string>& labelled = {});

// The same for a directory that --overwrite clears: someone may have corrected the predictions.csv
// of an evaluation and trained on it.
void check_labelled_survive(const std::string& directory, const std::filesystem::path& model,
                            const std::vector<std::string>& labelled);

// Opens a path that check_output_file() allows. Error(model) if it cannot be opened or written.
std::unique_ptr<PredictionOutput> open_output_file(const std::string& path, bool overwrite);

}  // namespace finetune

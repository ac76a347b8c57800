// The options of finetune evaluate.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/options/inference_binding.h"
#include "cli/options/row_binding.h"
#include "train/options/config_file.h"

namespace finetune {

struct EvaluateOptions {
  InferenceOptions inference;
  std::vector<std::string> data;
  std::vector<std::string> train;
  bool no_ngram_baseline = false;
  std::string output;
  std::vector<std::string> assertions, baselines, tolerances;
  std::string junit;
  std::optional<double> min_probability, target_accuracy;
  std::vector<std::string> slices, seen_in;
  int64_t max_samples = 0;
  RowWords rows;
  bool ignore_unknown_labels = false;
  bool normalize_labels = false;
  bool overwrite = false;
  bool json = false;
  bool quiet = false;
  bool no_progress = false;
};

void bind_evaluate_options(Subcommand command, EvaluateOptions& options);
// What was given, by the options' names.
std::vector<ConfigItem> options_given(const EvaluateOptions& options);

}  // namespace finetune

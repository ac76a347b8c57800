// drift.json: what predict compares its rows with, beside the model that was trained on them.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tasks/classification/drift/row_sample.h"
#include "tasks/classification/drift/seen_tokens.h"

namespace finetune {

inline constexpr std::string_view kDriftFile = "drift.json";

struct StoredDrift {
  std::string answers;  // the options that change answers (promise_file.h), in words
  SampleSummary summary;
  std::shared_ptr<const SeenTokens> seen;
};

// The file's text.
std::string drift_file_of(const SampleSummary& summary, const SeenTokens& seen,
                          const std::string& answers);
// Nothing if the directory has no such file. Error(model) if it is damaged or of another model.
// `labels`: of the model, 0 where a row has not one label; `unknown`: token of the tokenizer.
std::optional<StoredDrift> read_drift(const std::filesystem::path& directory, int64_t labels,
                                      int32_t unknown);

}  // namespace finetune

// drift.json: the summary of training rows that predict compares its rows with, kept in the model.
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
  std::string answers;  // the options that change answers, as text (promise_file.h)
  SampleSummary summary;
  std::shared_ptr<const SeenTokens> seen;
};

// Returns the text of the file.
std::string drift_file_of(const SampleSummary& summary, const SeenTokens& seen,
                          const std::string& answers);
// Returns nothing if the file is missing. Error(model) if it is damaged or of another model.
// `labels`: the model's number, or 0 if rows do not have one label each. `unknown`: a token id.
std::optional<StoredDrift> read_drift(const std::filesystem::path& directory, int64_t labels,
                                      int32_t unknown);

}  // namespace finetune

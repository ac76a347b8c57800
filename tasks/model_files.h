// The files beside a classification model's weights, for commands that move models.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace finetune {

struct StoredNgramCounts {
  std::filesystem::path path;
  int64_t ngrams = 0, outputs = 0, texts = 0;
};
// Returns nothing if the model directory has no ngrams.bin. Error(model) if it is damaged.
std::optional<StoredNgramCounts> ngrams_in(const std::filesystem::path& directory);

bool has_ngrams(const std::filesystem::path& directory);

// Copies ngrams.bin to another model directory if `config`, the text of the model's config.json,
// names it. Error(model) if it is missing, or not the file that is named.
void copy_ngrams(const std::string& config, const std::filesystem::path& from,
                 const std::filesystem::path& to);
// Copies drift.json if it exists. Error(model).
void copy_drift(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace finetune

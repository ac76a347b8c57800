// A linear model on n-grams beside a fine-tuned one: margins of texts, and the mixed logits.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tasks/calibration.h"
#include "tasks/classification/ngrams/ngram_model.h"
#include "tasks/classification/side_columns/unread_values.h"
#include "tasks/task.h"

namespace finetune {

// Scores texts on all threads. A text's margins depend only on the text.
class NgramScorer {
 public:
  explicit NgramScorer(NgramModel model) : model_(std::move(model)) {}
  int64_t outputs() const { return model_.outputs(); }
  const NgramModel& model() const { return model_; }
  // Returns (texts, outputs). Equal texts are scored once.
  std::vector<float> margins_of(std::span<const std::string> texts);

 private:
  std::unique_ptr<Vectorizer> borrow();
  void give_back(std::unique_ptr<Vectorizer> vectorizer);

  NgramModel model_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Vectorizer>> idle_;
};

// Mixes in place, for one or more rows.
void mix_logits(const MixWeights& weights, std::span<const float> margins, std::span<float> logits);

// Calls `use` with the n-grams in a model directory, as bytes and parsed. Error(model) if the file
// is missing, damaged, or does not have this SHA-256 from config.json.
using UseNgrams = std::function<void(std::string_view bytes, NgramModel ngrams)>;
void read_ngrams_of(const std::filesystem::path& directory, const std::string& sha256,
                    const UseNgrams& use);

// The mix of a model directory, for evaluation and prediction.
struct NgramMix {
  NgramMix(const MixWeights& of_both, NgramModel ngrams)
      : weights(of_both), scorer(std::move(ngrams)) {}
  // Counts values in the row's columns that the model cannot read.
  void count_unread(std::string_view input) {
    if (!columns.empty()) unread_.add(input, scorer.model().index());
  }
  std::vector<std::string> unread_lines() const;

  MixWeights weights;
  NgramScorer scorer;
  std::vector<std::string> columns;  // beside the text: numbers, then categories

 private:
  UnreadValues unread_;
};
// Null if the model has no mix, or if options.uses_mix is false. Error(model) if config.json
// (options.mix) and the file in options.model_directory are not from the same run. Error(usage) if
// the options name another number of columns than the model reads.
std::unique_ptr<NgramMix> open_ngram_mix(const TaskOptions& options, int64_t outputs);
// For the log, of a model that has a mix.
inline constexpr const char* kMixLine =
    "labels come from the model and its n-grams (--no-ngram-mix: the model alone)";

}  // namespace finetune

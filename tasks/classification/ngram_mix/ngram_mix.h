// A linear model on n-grams beside a fine-tuned one: margins of texts, and the logits of both.
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

// Scores texts on all threads; a text's margins depend on nothing else.
class NgramScorer {
 public:
  explicit NgramScorer(NgramModel model) : model_(std::move(model)) {}
  int64_t outputs() const { return model_.outputs(); }
  const NgramModel& model() const { return model_; }
  // (texts, outputs). Of equal texts one is scored.
  std::vector<float> margins_of(std::span<const std::string> texts);

 private:
  std::unique_ptr<Vectorizer> borrow();
  void give_back(std::unique_ptr<Vectorizer> vectorizer);

  NgramModel model_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Vectorizer>> idle_;
};

// In place, of one row or of several.
void mix_logits(const MixWeights& weights, std::span<const float> margins, std::span<float> logits);

// Gives `use` the n-grams in a model directory, as the file has them and read. Error(model) where
// the file is missing, damaged, or not the one that config.json names by this SHA-256.
using UseNgrams = std::function<void(std::string_view bytes, NgramModel ngrams)>;
void read_ngrams_of(const std::filesystem::path& directory, const std::string& sha256,
                    const UseNgrams& use);

// What a model directory has, for evaluation and prediction.
struct NgramMix {
  NgramMix(const MixWeights& of_both, NgramModel ngrams)
      : weights(of_both), scorer(std::move(ngrams)) {}
  // Counts a row's values of columns that the model cannot use.
  void count_unread(std::string_view input) {
    if (!columns.empty()) unread_.add(input, scorer.model().index());
  }
  std::vector<std::string> unread_lines() const;

  MixWeights weights;
  NgramScorer scorer;
  std::vector<std::string> columns;  // beside the text, by name: numbers, then categories

 private:
  UnreadValues unread_;
};
// Null: the model has none, or options.uses_mix is false. Error(model) where config.json
// (options.mix) and the file in options.model_directory are not of one run. Error(usage) where
// options name another number of columns than the model reads.
std::unique_ptr<NgramMix> open_ngram_mix(const TaskOptions& options, int64_t outputs);
// For the log.
std::string describe_mix(const MixWeights& weights);

}  // namespace finetune

// A random sample of rows, reduced to the numbers by which training rows and new rows are compared.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "data/columns/text_columns.h"
#include "tasks/classification/drift/seen_tokens.h"
#include "tasks/task.h"

namespace finetune {

// The numbers that are compared. `answer`: how far the row's label is ahead of the next one; with
// several labels, how near the nearest decision is to its threshold; or the predicted number.
enum class Trait { words, characters, new_tokens, answer };
inline constexpr size_t kTraits = 4;
inline constexpr std::array<const char*, kTraits> kTraitNames{"words", "characters", "new_tokens",
                                                              "answer"};

// The traits of a row that are known before its prediction.
struct RowTraits {
  int64_t row = 0;
  TextSum text;
  double words = 0, characters = 0, new_tokens = 0;
};

// The summary by which training rows and new rows are compared.
struct SampleSummary {
  int64_t rows = 0;                                 // rows that the sample was chosen from
  int64_t distinct = 0;                             // distinct texts, counted per block
  std::array<std::vector<double>, kTraits> values;  // ascending
  std::vector<int64_t> labels;                      // one label per row: rows with each label

  double mean(Trait trait) const;
  double share(int64_t label) const;
};

// The sample has at most kMostRows rows and does not depend on the order of predictions: the hash
// of a row's number decides whether it is in the sample.
//
// Bank data repeat texts, so the rows of an input are not independent. The sample is cut into
// blocks of a few rows, and equal texts in a block count once. All blocks have the same size, so
// small and large inputs are comparable. Among the distinct texts of a whole input, the share of
// rare texts would grow with the number of rows.
class RowSample {
 public:
  static constexpr size_t kMostRows = 2000, kBlockRows = 64;
  static constexpr int64_t kLeastDistinct = 50;

  // `outputs`: the model's number.
  RowSample(std::shared_ptr<const SeenTokens> seen, ProblemType problem, int64_t outputs)
      : seen_(std::move(seen)), problem_(problem), outputs_(outputs) {}

  // Returns nothing if the row is not in the sample. `row`: its number. `windows`: its samples.
  std::optional<RowTraits> traits_of(int64_t row, RowValues values, const TextColumns& columns,
                                     const SampleView& samples, IndexRange windows) const;
  // `answer`: the row's logits, or its predicted number.
  void add(const RowTraits& traits, std::span<const float> answer);
  void count_row() { ++rows_; }
  // Returns nothing if there are too few distinct texts. `temperature`: divides the logits.
  std::optional<SampleSummary> summary(double temperature) const;

 private:
  struct Entry {
    uint64_t key;
    TextSum text;
    std::array<double, kTraits> values;
    int32_t label;

    bool operator<(const Entry& other) const { return key < other.key; }
  };
  void keep_least(size_t count);

  std::shared_ptr<const SeenTokens> seen_;
  ProblemType problem_;
  int64_t outputs_;
  int64_t rows_ = 0;
  uint64_t most_ = ~uint64_t{0};  // larger keys are not in the sample
  std::vector<Entry> entries_;
};

}  // namespace finetune

// A random sample of rows with what is compared of them between training and a night's input.
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

// The numbers of a row that are compared. `answer`: by how much the row's label leads the next one;
// with several labels how far the nearest is from being decided otherwise; or the number.
enum class Trait { words, characters, new_tokens, answer };
inline constexpr size_t kTraits = 4;
inline constexpr std::array<const char*, kTraits> kTraitNames{"words", "characters", "new_tokens",
                                                              "answer"};

// What a row says before it is answered.
struct RowTraits {
  int64_t row = 0;
  TextSum text;
  double words = 0, characters = 0, new_tokens = 0;
};

// What training and a night's input are compared by.
struct SampleSummary {
  int64_t rows = 0;                                 // that the sample was chosen from
  int64_t distinct = 0;                             // texts in the sample
  std::array<std::vector<double>, kTraits> values;  // ascending
  std::vector<int64_t> labels;                      // one label a row: how many rows have each

  double mean(Trait trait) const;
  double share(int64_t label) const;
};

// The sample has at most kMostRows rows, however many there are, and does not depend on the order
// in which rows are answered: a row's number decides whether it is in it.
//
// Bank data repeat texts, so the rows of a night are not independent. The sample is cut into blocks
// of a few rows, and equal texts of a block count once. All blocks have the same size, so small and
// large inputs are comparable: among the distinct texts of a whole input, rare texts would have a
// larger share the more rows there are.
class RowSample {
 public:
  static constexpr size_t kMostRows = 2000, kBlockRows = 64;
  static constexpr int64_t kLeastDistinct = 50;

  // `outputs`: of the model.
  RowSample(std::shared_ptr<const SeenTokens> seen, ProblemType problem, int64_t outputs)
      : seen_(std::move(seen)), problem_(problem), outputs_(outputs) {}

  // Nothing if the row is not in the sample. `row`: its number; `windows`: its samples.
  std::optional<RowTraits> traits_of(int64_t row, RowValues values, const TextColumns& columns,
                                     const SampleView& samples, IndexRange windows) const;
  // `answer`: the row's logits, or its number.
  void add(const RowTraits& traits, std::span<const float> answer);
  void count_row() { ++rows_; }
  // Nothing if there are too few distinct texts to say anything. `temperature`: of the logits.
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
  uint64_t most_ = ~uint64_t{0};  // keys beyond are not in the sample
  std::vector<Entry> entries_;
};

}  // namespace finetune

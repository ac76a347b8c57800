// Explains a row's label: what each word and n-gram adds to its lead over the next label.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tasks/classification/ngrams/ngram_model.h"

namespace finetune {

struct Explanation {
  using Part = std::pair<std::string, float>;

  int32_t label = 0, against = 0;  // against: the second most probable label
  float lead = 0;                  // ln(probability / probability of `against`)
  std::vector<Part> words;         // how much the lead falls without the word, in order
  float rest = 0;                  // the lead minus the sum of these
  // With n-grams: what each adds to the lead, the largest first. Equal n-grams are one part.
  std::vector<Part> ngrams;
};

// `answers`: logits (1 + words, outputs) at temperature 1: first of the row, then of the row
// without each word. At least two outputs.
Explanation explained(std::span<const float> answers, int64_t outputs,
                      std::span<const std::string> words);

// Sets explanation.ngrams: for each n-gram of the text that the model knows, `weight` times what it
// adds to the score of explanation.label minus that of explanation.against. With weight times the
// difference of the biases, this is the whole difference. Columns after the text (linear_input())
// are parts, too: "amount=-12.00" by the names in `columns`.
void explain_ngrams(const NgramModel& model, std::string_view input, double weight,
                    std::span<const std::string> columns, Explanation& explanation);

inline constexpr size_t kShownNgrams = 8;  // for a row

// "TIRE +3.21; STORE +0.40": the `most` parts with the largest absolute values, in this order.
std::string parts_in_words(std::span<const Explanation::Part> parts, size_t most);

}  // namespace finetune

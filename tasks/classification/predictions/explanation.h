// Why a row got its label: what each word and n-gram adds to the label's lead over the next one.
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
  std::vector<Part> words;         // how much the lead falls without the word; in their order
  float rest = 0;                  // the lead less all of these
  // With n-grams: what each adds to the lead, the largest first. Equal n-grams are one part.
  std::vector<Part> ngrams;
};

// `answers`: logits (1 + words, outputs) at the temperature 1: of the row, then of the row without
// each word. At least two outputs.
Explanation explained(std::span<const float> answers, int64_t outputs,
                      std::span<const std::string> words);

// All n-grams of a text that the model knows: `weight` times what each adds to the score of
// explanation.label less that of explanation.against. With weight times the difference of the two
// biases this is the whole difference. Columns behind the text (linear_input()) are parts, too:
// "amount=-12.00" by the names in `columns`.
void explain_ngrams(const NgramModel& model, std::string_view input, double weight,
                    std::span<const std::string> columns, Explanation& explanation);

inline constexpr size_t kShownNgrams = 8;  // of a row

// "TIRE +3.21; STORE +0.40": the `most` parts with the largest absolute values, these first.
std::string parts_in_words(std::span<const Explanation::Part> parts, size_t most);

}  // namespace finetune

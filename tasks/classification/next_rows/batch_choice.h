// Chooses a batch of texts that have a high weight, represent others and differ from each other.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace finetune {

struct ChoiceCandidate {
  std::string text;
  double weight = 0;  // how informative its label would be, at least 0
};

// Returns the places of up to `rows` candidates (at most kMostNextRows), the best first. A greedy
// solution of the facility location problem: each next text adds most to the sum, over the
// candidates, of weight * similarity to the nearest chosen text. The similarity is the cosine of
// n-grams (ngrams/vectorizer.h), weighted by their rarity among the candidates. Of equal texts the
// first counts; texts that add nothing are left out. Uses only the 20 * rows candidates with the
// highest weights, and at most 4,000.
std::vector<size_t> choose_batch(std::span<const ChoiceCandidate> candidates, int64_t rows);

}  // namespace finetune

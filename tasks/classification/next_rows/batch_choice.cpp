// A greedy choice with lazy updates: a text's gain can only fall when others are chosen.
#include "tasks/classification/next_rows/batch_choice.h"

#include <algorithm>
#include <numeric>
#include <queue>

#include "core/threads/parallel.h"
#include "tasks/classification/ngrams/ngram_cutter.h"
#include "tasks/classification/ngrams/vectorizer.h"

namespace finetune {
namespace {

constexpr float kBlocks = 2;  // words and characters: two unit vectors
constexpr double kRounding = 1e-6;
constexpr int64_t kLookedAt = 20, kMostLookedAt = 4000;

std::vector<size_t> heaviest(std::span<const ChoiceCandidate> candidates, int64_t rows) {
  std::vector<size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return candidates[a].weight > candidates[b].weight; });
  const int64_t most = std::max(rows, std::min(kLookedAt * rows, kMostLookedAt));
  if (int64_t(order.size()) > most) order.resize(size_t(most));
  return order;
}

// The similarities of all pairs of texts, each from 0 to 1.
class Similarities {
 public:
  Similarities(std::span<const ChoiceCandidate> candidates, const std::vector<size_t>& places)
      : size_(places.size()), values_(size_ * size_, 0) {
    NgramTable table;
    NgramCutter cutter;
    Ngrams ngrams;
    for (const size_t place : places) {
      cutter.cut(candidates[place].text, ngrams);
      table.add(ngrams);
    }
    table.number();
    Vectorizer vectorizer(table);
    std::vector<std::vector<Feature>> texts;
    std::vector<std::vector<Feature>> with(size_t(table.size()));  // by n-gram: its texts' places
    for (size_t i = 0; i < size_; ++i) {
      const auto features = vectorizer(candidates[places[i]].text);
      texts.emplace_back(features.begin(), features.end());
      for (const Feature& own : features) with[own.id].push_back({uint32_t(i), own.value});
    }
    parallel_for(int64_t(size_), [&](int64_t i) {
      float* const row = values_.data() + size_t(i) * size_;
      for (const Feature& own : texts[size_t(i)]) {
        for (const Feature& other : with[own.id]) row[other.id] += own.value * other.value;
      }
      for (size_t j = 0; j < size_; ++j) row[j] = std::min(1.0F, row[j] / kBlocks);
      row[i] = 1;  // also for texts without n-grams
    });
  }

  std::span<const float> of(size_t text) const {
    return std::span(values_).subspan(text * size_, size_);
  }

 private:
  size_t size_;
  std::vector<float> values_;
};

struct Gain {
  double value;
  size_t place;
  size_t chosen;  // number of chosen texts when `value` was computed
  bool operator<(const Gain& other) const {
    return value != other.value ? value < other.value : place > other.place;
  }
};

}  // namespace

std::vector<size_t> choose_batch(std::span<const ChoiceCandidate> candidates, int64_t rows) {
  const std::vector<size_t> places = heaviest(candidates, rows);
  const Similarities similarities(candidates, places);
  std::vector<float> nearest(places.size(), 0);  // similarity to the nearest chosen text
  const auto gain_of = [&](size_t text) {
    const std::span<const float> own = similarities.of(text);
    double sum = 0;
    for (size_t j = 0; j < own.size(); ++j) {
      if (own[j] > nearest[j]) sum += candidates[places[j]].weight * double(own[j] - nearest[j]);
    }
    return sum;
  };
  std::priority_queue<Gain> queue;
  for (size_t i = 0; i < places.size(); ++i) queue.push({gain_of(i), i, 0});
  // A smaller gain is rounding: of texts with the same n-grams, one is enough.
  const double no_gain = places.empty() ? 0 : kRounding * candidates[places[0]].weight;
  std::vector<size_t> chosen;
  while (int64_t(chosen.size()) < rows && !queue.empty()) {
    const Gain best = queue.top();
    queue.pop();
    if (best.chosen < chosen.size()) {
      queue.push({gain_of(best.place), best.place, chosen.size()});
      continue;
    }
    if (best.value <= no_gain) break;
    const std::span<const float> own = similarities.of(best.place);
    for (size_t j = 0; j < own.size(); ++j) nearest[j] = std::max(nearest[j], own[j]);
    chosen.push_back(places[best.place]);
  }
  return chosen;
}

}  // namespace finetune

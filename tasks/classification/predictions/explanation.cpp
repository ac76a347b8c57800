// Compares a row's logits with its logits without each word, and names n-grams.
#include "tasks/classification/predictions/explanation.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "core/error.h"
#include "core/text/text.h"
#include "tasks/classification/predictions/named_ngrams.h"

namespace finetune {
namespace {

constexpr int kDigits = 2;

void put_largest_first(std::vector<Explanation::Part>& parts) {
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) {
    return std::abs(a.second) > std::abs(b.second);
  });
}

}  // namespace

Explanation explained(std::span<const float> answers, int64_t outputs,
                      std::span<const std::string> words) {
  FINETUNE_CHECK(outputs >= 2 && answers.size() == (1 + words.size()) * size_t(outputs));
  Explanation out;
  const auto own = answers.first(size_t(outputs));
  out.label = int32_t(std::max_element(own.begin(), own.end()) - own.begin());
  out.against = out.label == 0 ? 1 : 0;
  for (int32_t i = 0; i < int32_t(outputs); ++i) {
    if (i != out.label && own[size_t(i)] > own[size_t(out.against)]) out.against = i;
  }
  const auto lead = [&](size_t variant) {
    const float* logits = &answers[variant * size_t(outputs)];
    return logits[out.label] - logits[out.against];
  };
  out.lead = lead(0);
  out.rest = out.lead;
  for (size_t i = 0; i < words.size(); ++i) {
    const float fall = out.lead - lead(i + 1);
    out.words.emplace_back(words[i], fall);
    out.rest -= fall;
  }
  return out;
}

void explain_ngrams(const NgramModel& model, std::string_view input, double weight,
                    std::span<const std::string> columns, Explanation& explanation) {
  const NgramIndex& index = model.index();
  const SideRow row = split_columns(input, index.columns().counts());
  std::unordered_map<int64_t, std::string> names;
  for (auto& [hash, name] : named_ngrams(row.text)) {
    if (const int64_t number = index.number_of(hash); number >= 0) {
      names.try_emplace(number, std::move(name));
    }
  }
  for (const SideFeature& feature : side_features(row, index.columns())) {
    if (const int64_t number = index.number_of(feature.hash); number >= 0) {
      names[number] = concat(columns[feature.column], "=", trim(row.values[feature.column]));
    }
  }
  Vectorizer vectorizer(index);
  for (const Feature& feature : vectorizer(input)) {
    double difference = 0;
    for (const SparseWeights::Weight& of : model.weights().of(int64_t(feature.id))) {
      if (of.output == explanation.label) difference += double(of.value);
      if (of.output == explanation.against) difference -= double(of.value);
    }
    const auto adds = float(weight * difference * double(feature.value));
    std::string& name = names[int64_t(feature.id)];
    // A number has two features, which are added up.
    if (!explanation.ngrams.empty() && explanation.ngrams.back().first == name)
      explanation.ngrams.back().second += adds;
    else
      explanation.ngrams.emplace_back(name, adds);
  }
  put_largest_first(explanation.ngrams);
}

std::string parts_in_words(std::span<const Explanation::Part> parts, size_t most) {
  std::vector<Explanation::Part> largest(parts.begin(), parts.end());
  put_largest_first(largest);
  largest.resize(std::min(most, largest.size()));
  std::vector<std::string> shown;
  for (const auto& [name, value] : largest) {
    shown.push_back(
        concat(name, value < 0 ? " -" : " +", format_fixed(double(std::abs(value)), kDigits)));
  }
  return join(shown, "; ");
}

}  // namespace finetune

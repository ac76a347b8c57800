// Chooses rows by the hash of their number, and counts equal texts in a block once.
#include "tasks/classification/drift/row_sample.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "core/text/shown_numbers.h"
#include "core/text/text.h"
#include "tasks/classification/ngrams/ngram_cutter.h"

namespace finetune {
namespace {

constexpr uint64_t kRowSeed = 0x9FB21C651E98DF25;

uint64_t key_of(int64_t row) {
  return extended_hash(kRowSeed, uint64_t(row));
}

// The model's file keeps few digits, so the input's numbers get as few.
double rounded(double value) {
  return parse_double(significant(value, 5)).value_or(value);
}

void count_text(std::string_view text, RowTraits& out) {
  bool is_inside = false;
  for (const char byte : text) {
    const bool is_space = byte == ' ' || (byte >= '\t' && byte <= '\r');
    out.words += !is_space && !is_inside;
    is_inside = !is_space;
    out.characters += (uint8_t(byte) & 0xC0) != 0x80;
  }
}

// The index of the largest value, and its distance to the second largest.
std::pair<int32_t, double> best_of(std::span<const float> logits) {
  const auto best = std::max_element(logits.begin(), logits.end());
  float next = -INFINITY;
  for (auto other = logits.begin(); other != logits.end(); ++other) {
    if (other != best) next = std::max(next, *other);
  }
  return {int32_t(best - logits.begin()), logits.size() < 2 ? 0 : double(*best) - double(next)};
}

double nearest_to_zero(std::span<const float> logits) {
  double least = INFINITY;
  for (const float logit : logits) least = std::min(least, double(std::abs(logit)));
  return least;
}

}  // namespace

double SampleSummary::mean(Trait trait) const {
  const std::vector<double>& all = values[size_t(trait)];
  return std::accumulate(all.begin(), all.end(), 0.0) / double(all.size());
}

double SampleSummary::share(int64_t label) const {
  const auto all = std::accumulate(labels.begin(), labels.end(), int64_t{0});
  return double(labels[size_t(label)]) / double(all);
}

std::optional<RowTraits> RowSample::traits_of(int64_t row, RowValues values,
                                              const TextColumns& columns, const SampleView& samples,
                                              IndexRange windows) const {
  if (key_of(row) > most_) return std::nullopt;
  RowTraits out;
  out.row = row;
  out.text = text_sum_of(values, columns);
  std::string buffer;
  count_text(joined_text(values, columns, buffer), out);
  if (columns.pair) count_text(values[*columns.pair], out);
  SeenTokens::Counts counts;
  for (int64_t i = windows.begin; i < windows.end; ++i) {
    const auto more = seen_->count(
        samples.ids.subspan(size_t(samples.offsets[size_t(i)]), size_t(samples.length(i))));
    counts.all += more.all;
    counts.fresh += more.fresh;
  }
  out.new_tokens = double(counts.fresh) / double(std::max<int64_t>(1, counts.all));
  return out;
}

void RowSample::add(const RowTraits& traits, std::span<const float> answer) {
  Entry entry{key_of(traits.row), traits.text, {}, -1};
  double value = 0;
  switch (problem_) {
    case ProblemType::single_label:
      std::tie(entry.label, value) = best_of(answer);
      break;
    case ProblemType::multi_label:
      value = nearest_to_zero(answer);
      break;
    case ProblemType::regression:
      value = double(answer[0]);
      break;
  }
  entry.values = {traits.words, traits.characters, traits.new_tokens, value};
  entries_.push_back(entry);
  if (entries_.size() >= 2 * kMostRows) keep_least(kMostRows);
}

void RowSample::keep_least(size_t count) {
  if (entries_.size() <= count) return;
  std::nth_element(entries_.begin(), entries_.begin() + ptrdiff_t(count) - 1, entries_.end());
  entries_.resize(count);
  most_ = entries_.back().key;
}

std::optional<SampleSummary> RowSample::summary(double temperature) const {
  std::vector<Entry> entries = entries_;
  std::sort(entries.begin(), entries.end());
  if (entries.size() > kMostRows) entries.resize(kMostRows);
  SampleSummary out;
  out.rows = rows_;
  if (problem_ == ProblemType::single_label) out.labels.resize(size_t(outputs_));
  std::set<TextSum> all, block;
  for (size_t i = 0; i < entries.size(); ++i) {
    const Entry& entry = entries[i];
    if (i % kBlockRows == 0) block.clear();
    all.insert(entry.text);
    if (!block.insert(entry.text).second) continue;
    for (size_t trait = 0; trait < kTraits; ++trait) {
      const double scale = Trait(trait) == Trait::answer ? temperature : 1;
      out.values[trait].push_back(rounded(entry.values[trait] / scale));
    }
    if (entry.label >= 0) ++out.labels[size_t(entry.label)];
  }
  for (std::vector<double>& values : out.values) std::sort(values.begin(), values.end());
  out.distinct = int64_t(all.size());
  if (out.distinct < kLeastDistinct) return std::nullopt;
  return out;
}

}  // namespace finetune

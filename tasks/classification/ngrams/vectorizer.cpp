// Counts n-grams in a hash table, then weighs those of a text.
#include "tasks/classification/ngrams/vectorizer.h"

#include <cmath>

namespace finetune {
namespace {

constexpr size_t kFirstPlaces = 1 << 12;

}  // namespace

NgramTable::NgramTable() : places_(kFirstPlaces) {}

NgramTable::Entry& NgramTable::place_of(uint64_t hash) {
  const size_t mask = places_.size() - 1;
  size_t at = hash & mask;
  while (places_[at].texts != 0 && places_[at].hash != hash) at = (at + 1) & mask;
  return places_[at];
}

void NgramTable::grow() {
  std::vector<Entry> smaller(places_.size() * 2);
  smaller.swap(places_);
  for (const Entry& entry : smaller) {
    if (entry.texts != 0) place_of(entry.hash) = entry;
  }
}

void NgramTable::count(uint64_t hash) {
  Entry& entry = place_of(hash);
  if (entry.texts == 0) {
    entry = {hash, 1, uint32_t(texts_)};
    order_.push_back(hash);
    if (++used_ > places_.size() / 2) grow();
  } else if (entry.last != uint32_t(texts_)) {
    entry.last = uint32_t(texts_);
    ++entry.texts;
  }
}

void NgramTable::add(const Ngrams& ngrams) {
  for (uint64_t hash : ngrams.words) count(hash);
  for (uint64_t hash : ngrams.characters) count(hash);
  ++texts_;
}

void NgramTable::number() {
  uint32_t id = 0;
  for (uint64_t hash : order_) place_of(hash).last = id++;
  order_ = {};
}

const NgramTable::Entry* NgramTable::find(uint64_t hash) const {
  const size_t mask = places_.size() - 1;
  for (size_t at = hash & mask; places_[at].texts != 0; at = (at + 1) & mask) {
    if (places_[at].hash == hash) return &places_[at];
  }
  return nullptr;
}

Vectorizer::Vectorizer(const NgramTable& table)
    : table_(&table), idf_(size_t(table.size())), counts_(size_t(table.size())) {
  table.for_each([&](const NgramTable::Entry& entry) {
    idf_[entry.last] = float(1 + std::log(double(1 + table.texts()) / double(1 + entry.texts)));
  });
}

std::span<const Feature> Vectorizer::operator()(std::string_view text) {
  cutter_.cut(text, ngrams_);
  features_.clear();
  add_block(ngrams_.words);
  add_block(ngrams_.characters);
  return features_;
}

void Vectorizer::add_block(const std::vector<uint64_t>& hashes) {
  const size_t begin = features_.size();
  for (uint64_t hash : hashes) {
    const NgramTable::Entry* entry = table_->find(hash);
    if (entry && counts_[entry->last]++ == 0) features_.push_back({entry->last, 0});
  }
  double squares = 0;
  for (size_t i = begin; i < features_.size(); ++i) {
    Feature& feature = features_[i];
    feature.value = idf_[feature.id];
    uint32_t& count = counts_[feature.id];
    if (count > 1) feature.value *= float(1 + std::log(double(count)));
    count = 0;
    squares += double(feature.value) * double(feature.value);
  }
  const auto scale = float(1 / std::sqrt(squares));
  for (size_t i = begin; i < features_.size(); ++i) features_[i].value *= scale;
}

}  // namespace finetune

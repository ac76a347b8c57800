// Counts n-grams in a hash table, and weights the n-grams of a text.
#include "tasks/classification/ngrams/vectorizer.h"

#include <cmath>

namespace finetune {
namespace {

constexpr size_t kFirstPlaces = 1 << 12;

}  // namespace

float NgramIndex::idf_of(int64_t texts, int64_t texts_with_it) {
  return float(1 + std::log(double(1 + texts) / double(1 + texts_with_it)));
}

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

void NgramTable::add(const Ngrams& ngrams, std::span<const SideFeature> features) {
  for (uint64_t hash : ngrams.words) count(hash);
  for (uint64_t hash : ngrams.characters) count(hash);
  for (const SideFeature& feature : features) count(feature.hash);
  ++texts_;
}

void NgramTable::number() {
  for (uint64_t hash : order_) {
    Entry& entry = place_of(hash);
    entry.last = uint32_t(idf_.size());
    idf_.push_back(idf_of(texts_, entry.texts));
  }
  order_ = {};
}

const NgramTable::Entry* NgramTable::find(uint64_t hash) const {
  const size_t mask = places_.size() - 1;
  for (size_t at = hash & mask; places_[at].texts != 0; at = (at + 1) & mask) {
    if (places_[at].hash == hash) return &places_[at];
  }
  return nullptr;
}

int64_t NgramTable::number_of(uint64_t hash) const {
  const Entry* entry = find(hash);
  return entry ? int64_t{entry->last} : -1;
}

std::vector<KnownNgram> NgramTable::ngrams() const {
  std::vector<KnownNgram> out(used_);
  for_each([&](const Entry& entry) { out[entry.last] = {entry.hash, entry.texts}; });
  return out;
}

Vectorizer::Vectorizer(const NgramIndex& index) : index_(&index), counts_(index.idf().size()) {}

std::span<const Feature> Vectorizer::operator()(std::string_view text) {
  const SideRow row = split_columns(text, index_->columns().counts());
  cutter_.cut(row.text, ngrams_);
  features_.clear();
  add_block(ngrams_.words);
  add_block(ngrams_.characters);
  add_columns(row);
  return features_;
}

void Vectorizer::add_columns(const SideRow& row) {
  for (const SideFeature& feature : side_features(row, index_->columns())) {
    const int64_t number = index_->number_of(feature.hash);
    if (number >= 0) features_.push_back({uint32_t(number), feature.value});
  }
}

void Vectorizer::add_block(const std::vector<uint64_t>& hashes) {
  const size_t begin = features_.size();
  for (uint64_t hash : hashes) {
    const int64_t number = index_->number_of(hash);
    if (number >= 0 && counts_[size_t(number)]++ == 0) features_.push_back({uint32_t(number), 0});
  }
  const std::span<const float> idf = index_->idf();
  double squares = 0;
  for (size_t i = begin; i < features_.size(); ++i) {
    Feature& feature = features_[i];
    feature.value = idf[feature.id];
    uint32_t& count = counts_[feature.id];
    if (count > 1) feature.value *= float(1 + std::log(double(count)));
    count = 0;
    squares += double(feature.value) * double(feature.value);
  }
  const auto scale = float(1 / std::sqrt(squares));
  for (size_t i = begin; i < features_.size(); ++i) features_[i].value *= scale;
}

}  // namespace finetune

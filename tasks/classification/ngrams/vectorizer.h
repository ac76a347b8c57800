// Converts texts to sparse vectors: TF-IDF of the n-grams of words and of characters. The weight of
// an n-gram that occurs t times in a text is (1 + ln t) * idf, with idf = 1 + ln((1 + n) / (1 +
// df)) for n texts of which df have it. The parts of words and of characters have length 1 each.
// The features of columns beside the text (side_columns.h) follow unchanged.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "tasks/classification/ngrams/ngram_cutter.h"
#include "tasks/classification/side_columns/side_columns.h"

namespace finetune {

struct Feature {
  uint32_t id;
  float value;
};

// An n-gram, and the number of texts that have it.
struct KnownNgram {
  uint64_t hash;
  uint32_t texts;
};

// The n-grams that a model knows, numbered from 0.
class NgramIndex {
 public:
  virtual ~NgramIndex() = default;
  virtual int64_t number_of(uint64_t hash) const = 0;  // -1: none
  virtual std::vector<KnownNgram> ngrams() const = 0;  // by number
  virtual int64_t texts() const = 0;                   // number of texts counted
  std::span<const float> idf() const { return idf_; }  // by number
  const SideColumns& columns() const { return columns_; }

 protected:
  static float idf_of(int64_t texts, int64_t texts_with_it);
  std::vector<float> idf_;
  SideColumns columns_;
};

// The n-grams of a collection of texts.
class NgramTable final : public NgramIndex {
 public:
  struct Entry {
    uint64_t hash = 0;
    uint32_t texts = 0;  // number of texts with it; 0: the place is free
    uint32_t last = 0;   // the last counted text with it; later the feature's id
  };

  NgramTable();
  // Counts the n-grams of one more text, and the features of its columns.
  void add(const Ngrams& ngrams, std::span<const SideFeature> features = {});
  void set_columns(SideColumns columns) { columns_ = std::move(columns); }
  // Ends counting. N-grams are numbered in the order of their first occurrence.
  void number();
  int64_t number_of(uint64_t hash) const override;
  std::vector<KnownNgram> ngrams() const override;
  const Entry* find(uint64_t hash) const;  // null: none
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const Entry& entry : places_) {
      if (entry.texts != 0) visit(entry);
    }
  }

  int64_t size() const { return int64_t(used_); }
  int64_t texts() const override { return texts_; }

 private:
  void count(uint64_t hash);
  Entry& place_of(uint64_t hash);
  void grow();

  std::vector<Entry> places_;  // their number is a power of two
  size_t used_ = 0;
  int64_t texts_ = 0;
  std::vector<uint64_t> order_;  // hashes by first occurrence
};

// Converts inputs (with_columns()) to vectors, also inputs that the index has not counted. Not
// thread-safe.
class Vectorizer {
 public:
  explicit Vectorizer(const NgramIndex& index);
  // Valid until the next call. Empty if the text has no known n-gram.
  std::span<const Feature> operator()(std::string_view text);
  int64_t features() const { return int64_t(counts_.size()); }

 private:
  void add_block(const std::vector<uint64_t>& hashes);
  void add_columns(const SideRow& row);

  const NgramIndex* index_;
  std::vector<uint32_t> counts_;  // by id; 0 between calls
  NgramCutter cutter_;
  Ngrams ngrams_;
  std::vector<Feature> features_;
};

}  // namespace finetune

// Texts to sparse vectors: TF-IDF of the n-grams of words and of those of characters.
// The weight of an n-gram that a text has t times is (1 + ln t) * idf, idf = 1 + ln((1 + n) /
// (1 + df)) with n texts, df of which have it. Words and characters have the length 1 each.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tasks/classification/ngrams/ngram_cutter.h"

namespace finetune {

struct Feature {
  uint32_t id;
  float value;
};

// The n-grams of a collection of texts.
class NgramTable {
 public:
  struct Entry {
    uint64_t hash = 0;
    uint32_t texts = 0;  // that have it; 0: the place is free
    uint32_t last = 0;   // while counting the last text that has it, then the feature's id
  };

  NgramTable();
  // Counts the n-grams of one more text.
  void add(const Ngrams& ngrams);
  // Ends counting: n-grams are numbered as they first came.
  void number();
  const Entry* find(uint64_t hash) const;  // null: none
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const Entry& entry : places_) {
      if (entry.texts != 0) visit(entry);
    }
  }

  int64_t size() const { return int64_t(used_); }
  int64_t texts() const { return texts_; }

 private:
  void count(uint64_t hash);
  Entry& place_of(uint64_t hash);
  void grow();

  std::vector<Entry> places_;  // a power of two
  size_t used_ = 0;
  int64_t texts_ = 0;
  std::vector<uint64_t> order_;  // hashes as they first came
};

// Makes vectors of texts, those that the table has counted or others.
class Vectorizer {
 public:
  explicit Vectorizer(const NgramTable& table);
  // Valid until the next call. Without any known n-gram: empty.
  std::span<const Feature> operator()(std::string_view text);
  int64_t features() const { return table_->size(); }

 private:
  void add_block(const std::vector<uint64_t>& hashes);

  const NgramTable* table_;
  std::vector<float> idf_;        // by id
  std::vector<uint32_t> counts_;  // by id; 0 between calls
  NgramCutter cutter_;
  Ngrams ngrams_;
  std::vector<Feature> features_;
};

}  // namespace finetune

// The n-grams of a text: words, and characters inside words, each as a hash of 64 bits.
// The same n-grams as in scikit-learn's TfidfVectorizer with analyzer="word", ngram_range=(1, 2),
// and with analyzer="char_wb", ngram_range=(2, 5): lower case; a word is a run of two or more \w.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace finetune {

struct Ngrams {
  std::vector<uint64_t> words;       // a word, or two neighbouring words
  std::vector<uint64_t> characters;  // two to five, of a word with a blank on each side
};

// A bijection of `hash` for each value (splitmix64's finalizer): extending keeps n-grams apart.
uint64_t extended_hash(uint64_t hash, uint64_t value);

constexpr size_t kLongestCharacterNgram = 5;
// Longer texts are cut: each byte takes 60 bytes of memory, and transactions are short.
constexpr size_t kMostNgramBytes = size_t{1} << 20;

// Reuses its memory. An n-gram is listed as often as it occurs. N-grams of words and of characters
// have different hashes, even if their text is the same.
class NgramCutter {
 public:
  void cut(std::string_view text, Ngrams& out);

 private:
  void cut_words(Ngrams& out);
  void cut_characters(Ngrams& out);

  std::vector<char32_t> characters_;  // the text's characters, in lower case
  std::vector<uint64_t> hashes_;      // of the text's words
};

}  // namespace finetune

// Added tokens ("[SEP]", user-defined words), which are matched in a text literally. They are found
// before the text is normalized or split, as in AddedVocabulary of Hugging Face tokenizers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "tokenizer/sentencepiece/piece_trie.h"

namespace finetune {

struct AddedToken {
  std::string content;
  int32_t id = -1;
  bool single_word = false;  // not next to a word character
  bool lstrip = false;       // includes white space before it
  bool rstrip = false;       // includes white space behind it
  bool normalized = true;    // matched in the normalized text
  bool special = false;
  bool of_model = true;  // a piece of the model's own vocabulary, too
};

// The contents of tokens that are not pieces of the model. Words must not be divided into these.
std::unordered_set<std::string_view> outside_model(const std::vector<AddedToken>& tokens);

// Finds added tokens in a text: leftmost, longest, without overlap.
class AddedTokenMatcher {
 public:
  AddedTokenMatcher() = default;
  // `patterns[i]` is the text that becomes tokens[i]. Empty patterns match nothing.
  AddedTokenMatcher(std::vector<AddedToken> tokens, std::vector<std::string> patterns);
  bool empty() const { return trie_.empty(); }

  struct Match {
    int32_t id;
    size_t begin, end;  // bytes, including white space that belongs to the token
  };
  // Calls between(begin, end) for each non-empty text between tokens and found(match) for each
  // token, in order.
  template <typename Between, typename Found>
  void split(std::string_view text, Between&& between, Found&& found) const {
    size_t done = 0;
    size_t search = 0;
    Match match{};
    while (next(text, search, done, match)) {
      if (done < match.begin) between(done, match.begin);
      found(match);
      done = match.end;
    }
    if (done < text.size()) between(done, text.size());
  }

 private:
  // Finds the next match at or after `search` and moves `search`. `done` is the end of the previous
  // match.
  bool next(std::string_view text, size_t& search, size_t done, Match& match) const;
  size_t next_candidate(std::string_view text, size_t from) const;

  std::vector<AddedToken> tokens_;
  std::vector<std::string> patterns_;
  PieceTrie trie_;
  bool starts_[256] = {};
  int only_start_ = -1;  // the common first byte of all patterns, or -1
};

}  // namespace finetune

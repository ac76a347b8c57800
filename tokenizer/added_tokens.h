// Added tokens: those that stand in a text as they are ("[SEP]", user-defined words).
// They are found before anything else is done to the text, as AddedVocabulary of Hugging Face
// tokenizers does.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/sentencepiece/piece_trie.h"

namespace finetune {

struct AddedToken {
  std::string content;
  int32_t id = -1;
  bool single_word = false;  // only where no word character stands before or behind
  bool lstrip = false;       // takes white space before it
  bool rstrip = false;       // takes white space behind it
  bool normalized = true;    // looked for in the normalized text
  bool special = false;
};

// Finds a set of them: leftmost, longest, without overlap.
class AddedTokenMatcher {
 public:
  AddedTokenMatcher() = default;
  // `patterns[i]` is what tokens[i] looks like in the text. Empty ones are left out.
  AddedTokenMatcher(std::vector<AddedToken> tokens, std::vector<std::string> patterns);
  bool empty() const { return trie_.empty(); }

  struct Match {
    int32_t id;
    size_t begin, end;  // bytes, white space that belongs to the token included
  };
  // Calls between(begin, end) for non-empty text between tokens and found(match), in order.
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
  // The next match at or behind `search`, which moves on; `done`: end of the match before.
  bool next(std::string_view text, size_t& search, size_t done, Match& match) const;
  size_t next_candidate(std::string_view text, size_t from) const;

  std::vector<AddedToken> tokens_;
  std::vector<std::string> patterns_;
  PieceTrie trie_;
  bool starts_[256] = {};
  int only_start_ = -1;  // the one byte that all patterns begin with
};

}  // namespace finetune

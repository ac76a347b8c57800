// The best segmentation under a unigram language model (Kudo, "Subword regularization", 2018).
//
// The sentencepiece library does this too, but its 0.1.97 compares a sum in double precision with
// one rounded to single, so that rounding decides among segmentations of equal score. Sums and
// comparisons in single precision give the ids of Hugging Face's environment, whose library is
// newer ("xxxx..."), whatever the installed one is. The library still normalizes the text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/sentencepiece/piece_trie.h"

namespace finetune {

class Unigram {
 public:
  // From the bytes of a model file (sentencepiece_model.proto). Nothing for a model of another kind
  // and for one that writes unknown characters as bytes.
  static std::optional<Unigram> read(std::string_view model);

  struct Segment {
    int32_t id;
    uint32_t begin, end;  // bytes of the text
  };
  // `text` is normalized. Neighbouring unknown characters are one segment.
  void segment(std::string_view text, std::vector<Segment>& out) const;

 private:
  std::vector<std::string> pieces_;
  std::vector<float> scores_;  // by id
  PieceTrie trie_;
  int32_t unknown_ = 0;
  float unknown_score_ = 0;
};

}  // namespace finetune

// The best segmentation under a unigram language model (Kudo, "Subword regularization", 2018).
//
// The library's own segmentation is not used: version 0.1.97 compares a double-precision sum with a
// rounded single-precision one, so rounding decides between segmentations of equal score
// ("xxxx..."). Single precision throughout gives the ids of Hugging Face's newer library, whatever
// version is installed. The library still normalizes the text.
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
  // Reads a model file (sentencepiece_model.proto). Returns nothing if the model is not a unigram
  // model, or encodes unknown characters as bytes.
  static std::optional<Unigram> read(std::string_view model);

  struct Segment {
    int32_t id;
    uint32_t begin, end;  // bytes of the text
  };
  // `text` must be normalized. Neighbouring unknown characters form one segment.
  void segment(std::string_view text, std::vector<Segment>& out) const;

 private:
  std::vector<std::string> pieces_;
  std::vector<float> scores_;  // by id
  PieceTrie trie_;
  int32_t unknown_ = 0;
  float unknown_score_ = 0;
};

}  // namespace finetune

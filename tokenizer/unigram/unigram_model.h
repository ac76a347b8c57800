// Pieces with scores, and the best segmentation of a word under them.
// (Kudo, "Subword regularization", 2018.) As in Hugging Face tokenizers, scores are added in double
// precision.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/sentencepiece/piece_trie.h"

namespace finetune::unigram {

class UnigramModel {
 public:
  UnigramModel() = default;
  // `pieces` are sorted by bytes, without repeats; `scores` are by id. `unknown` is the id of
  // characters without a piece.
  using Pieces = std::vector<std::pair<std::string_view, int32_t>>;
  UnigramModel(const Pieces& pieces, const std::vector<double>& scores, int32_t unknown);

  struct Token {
    int32_t id;
    uint32_t end;  // in bytes of the word
  };
  // The best path that ends at a byte.
  struct Node {
    double score;
    uint32_t begin;
    int32_t id;
  };
  // `word` is valid UTF-8. Neighbouring unknown characters make one token. `nodes` is scratch
  // memory.
  void encode(std::string_view word, std::vector<Node>& nodes, std::vector<Token>& out) const;

 private:
  struct Piece {
    double score;
    int32_t id;
  };

  PieceTrie trie_;
  std::vector<Piece> pieces_;  // in the order of their bytes: a word's pieces are close together
  int32_t unknown_ = -1;
  double unknown_score_ = 0;
};

}  // namespace finetune::unigram

// Viterbi search over the pieces of a word.
#include "tokenizer/unigram/unigram_model.h"

#include <algorithm>
#include <limits>

#include "core/text/utf8.h"

namespace finetune::unigram {
namespace {

constexpr double kUnknownPenalty = 10.0;
constexpr uint32_t kNoBegin = UINT32_MAX;

}  // namespace

UnigramModel::UnigramModel(const Pieces& pieces, const std::vector<double>& scores, int32_t unknown)
    : unknown_(unknown) {
  Pieces keys;
  keys.reserve(pieces.size());
  for (const auto& [piece, id] : pieces) {
    if (piece.empty()) continue;
    keys.push_back({piece, int32_t(pieces_.size())});
    pieces_.push_back({scores[size_t(id)], id});
  }
  trie_.build(keys);
  double lowest = std::numeric_limits<double>::infinity();
  for (double score : scores) lowest = std::min(lowest, score);
  unknown_score_ = lowest - kUnknownPenalty;
}

void UnigramModel::encode(std::string_view word, std::vector<Node>& nodes,
                          std::vector<Token>& out) const {
  out.clear();
  nodes.assign(word.size() + 1, {0, kNoBegin, -1});
  const char* const end = word.data() + word.size();
  for (uint32_t begin = 0; begin < word.size();) {
    const double so_far = nodes[begin].score;
    const uint32_t single = utf8::decode(word, begin).length;
    bool single_known = false;
    const auto offer = [&](uint32_t length, int32_t id, double own) {
      Node& node = nodes[begin + length];
      const double score = own + so_far;
      if (node.begin == kNoBegin || score > node.score) node = {score, begin, id};
    };
    trie_.for_each_prefix(word.data() + begin, end, [&](int32_t index, uint32_t length) {
      offer(length, pieces_[size_t(index)].id, pieces_[size_t(index)].score);
      single_known |= length == single;
    });
    if (!single_known) offer(single, unknown_, unknown_score_);
    begin += single;
  }
  for (uint32_t at = uint32_t(word.size()); at > 0; at = nodes[at].begin) {
    const int32_t id = nodes[at].id;
    if (id != unknown_ || out.empty() || out.back().id != unknown_) out.push_back({id, at});
  }
  std::reverse(out.begin(), out.end());
  // Neighbouring unknown characters may together be a piece that was not on the best path.
  uint32_t begin = 0;
  for (Token& token : out) {
    if (token.id == unknown_) {
      const PieceTrie::Match match = trie_.longest(word.data() + begin, word.data() + token.end);
      if (match.length == token.end - begin) token.id = pieces_[size_t(match.value)].id;
    }
    begin = token.end;
  }
}

}  // namespace finetune::unigram

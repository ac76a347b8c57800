// Reads pieces and scores of the model file; Viterbi search in single precision.
#include "tokenizer/sentencepiece/unigram.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "core/text/utf8.h"
#include "tokenizer/sentencepiece/model_fields.h"

namespace finetune {
namespace {

constexpr float kUnknownPenalty = 10.0f;  // as in the library

}  // namespace

std::optional<Unigram> Unigram::read(std::string_view model) {
  Unigram out;
  std::vector<uint64_t> types;
  float lowest = std::numeric_limits<float>::max();
  float highest = std::numeric_limits<float>::lowest();
  ProtoPart field, part;
  while (read_part(model, field)) {
    if (field.number == kPiece) {  // text, score, type
      std::string piece;
      float score = 0;
      uint64_t type = kNormal;
      while (read_part(field.bytes, part)) {
        if (part.number == 1) piece = std::string(part.bytes);
        if (part.number == 2) score = std::bit_cast<float>(uint32_t(part.value));
        if (part.number == 3) type = part.value;
      }
      if (type == kByte) return std::nullopt;
      if (type == kUnknown) out.unknown_ = int32_t(types.size());
      if (type == kNormal) {
        lowest = std::min(lowest, score);
        highest = std::max(highest, score);
      }
      out.pieces_.push_back(std::move(piece));
      out.scores_.push_back(score);
      types.push_back(type);
    } else if (field.number == kTrainerSpec) {
      while (read_part(field.bytes, part)) {
        if (part.number == kModelType && part.value != kModelUnigram) return std::nullopt;
      }
    }
  }
  out.unknown_score_ = lowest - kUnknownPenalty;
  std::vector<std::pair<std::string_view, int32_t>> keys;
  for (size_t id = 0; id < types.size(); ++id) {
    if (types[id] != kNormal && types[id] != kUserDefined) continue;
    if (types[id] == kUserDefined) {
      out.scores_[id] = float(double(out.pieces_[id].size()) * double(highest) - 0.1);
    }
    if (!out.pieces_[id].empty()) keys.push_back({out.pieces_[id], int32_t(id)});
  }
  std::stable_sort(keys.begin(), keys.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  keys.erase(std::unique(keys.begin(), keys.end(),
                         [](const auto& a, const auto& b) { return a.first == b.first; }),
             keys.end());
  out.trie_.build(keys);
  return out;
}

void Unigram::segment(std::string_view text, std::vector<Segment>& out) const {
  struct Node {  // the best path that ends at this byte
    float score = 0;
    int32_t id = -1;
    uint32_t begin = UINT32_MAX;
  };
  out.clear();
  std::vector<Node> nodes(text.size() + 1);
  const char* end = text.data() + text.size();
  for (uint32_t begin = 0; begin < text.size();) {
    float score = nodes[begin].score;
    uint32_t single = utf8::decode(text, begin).length;
    bool single_known = false;
    auto offer = [&](uint32_t length, int32_t id, float own) {
      Node& node = nodes[begin + length];
      if (node.begin == UINT32_MAX || score + own > node.score) node = {score + own, id, begin};
    };
    trie_.for_each_prefix(text.data() + begin, end, [&](int32_t id, uint32_t length) {
      offer(length, id, scores_[size_t(id)]);
      single_known |= length == single;
    });
    if (!single_known) offer(single, unknown_, unknown_score_);
    begin += single;
  }
  for (uint32_t at = uint32_t(text.size()); at > 0; at = nodes[at].begin) {
    if (nodes[at].id == unknown_ && !out.empty() && out.back().id == unknown_) {
      out.back().begin = nodes[at].begin;
    } else {
      out.push_back({nodes[at].id, nodes[at].begin, at});
    }
  }
  std::reverse(out.begin(), out.end());
}

}  // namespace finetune

// Stores the pieces in blocks of text, with a sorted index to their ids.
#include "tokenizer/wordpiece/vocabulary.h"

#include <algorithm>
#include <cstring>

namespace finetune {

std::string_view Vocabulary::keep(std::string_view piece) {
  constexpr size_t kBlock = 1 << 16;
  if (piece.empty()) return {};
  if (piece.size() > block_left_) {
    block_left_ = std::max(kBlock, piece.size());
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(block_left_));
    block_next_ = blocks_.back().get();
  }
  char* at = block_next_;
  std::memcpy(at, piece.data(), piece.size());
  block_next_ += piece.size();
  block_left_ -= piece.size();
  return {at, piece.size()};
}

void Vocabulary::add(std::string_view piece, int32_t id) {
  piece = keep(piece);
  if (size_t(id) >= pieces_.size()) pieces_.resize(size_t(id) + 1);
  pieces_[size_t(id)] = piece;
  added_.push_back({piece, id});
}

void Vocabulary::finish() {
  sorted_ = added_;
  std::stable_sort(sorted_.begin(), sorted_.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  size_t kept = 0;
  for (size_t i = 0; i < sorted_.size(); ++i) {
    if (i + 1 < sorted_.size() && sorted_[i + 1].first == sorted_[i].first) continue;
    sorted_[kept++] = sorted_[i];
  }
  sorted_.resize(kept);
}

int32_t Vocabulary::find(std::string_view piece) const {
  auto it = std::lower_bound(sorted_.begin(), sorted_.end(), piece,
                             [](const auto& a, std::string_view b) { return a.first < b; });
  return it != sorted_.end() && it->first == piece ? it->second : -1;
}

std::string_view Vocabulary::piece(int32_t id) const {
  return id >= 0 && id < size() ? pieces_[size_t(id)] : std::string_view();
}

}  // namespace finetune

// The pieces of a vocabulary with their ids.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace finetune {

// Four times what the largest vocabularies of all languages have. Memory grows with the largest id,
// which a file of a few bytes can name.
constexpr int64_t kMostTokens = int64_t{1} << 22;

class Vocabulary {
 public:
  // Any order of ids. Where a piece comes twice the last one counts for find(); every id keeps its
  // piece for piece().
  void add(std::string_view piece, int32_t id);
  void finish();  // makes what was added known to find(); add() and finish() may follow

  int32_t find(std::string_view piece) const;               // -1 if absent
  std::string_view piece(int32_t id) const;                 // "" for an id without a piece
  int32_t size() const { return int32_t(pieces_.size()); }  // largest id + 1
  size_t count() const { return sorted_.size(); }           // different pieces

  // Pieces with their ids, sorted by bytes, without repeats.
  const std::vector<std::pair<std::string_view, int32_t>>& sorted() const { return sorted_; }

 private:
  std::string_view keep(std::string_view piece);  // a copy that lives as long as the vocabulary

  std::vector<std::unique_ptr<char[]>> blocks_;
  size_t block_left_ = 0;
  char* block_next_ = nullptr;
  std::vector<std::string_view> pieces_;  // by id
  std::vector<std::pair<std::string_view, int32_t>> added_;
  std::vector<std::pair<std::string_view, int32_t>> sorted_;
};

}  // namespace finetune

// The pieces of a vocabulary and their ids.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace finetune {

// Four times the size of the largest multilingual vocabularies. Memory grows with the largest id,
// which a file of a few bytes can name.
constexpr int64_t kMostTokens = int64_t{1} << 22;

class Vocabulary {
 public:
  // Ids may come in any order. If a piece occurs twice, find() returns the last id; piece() works
  // for every id.
  void add(std::string_view piece, int32_t id);
  void finish();  // builds the index for find(); more pieces and another finish() may follow

  int32_t find(std::string_view piece) const;               // -1 if absent
  std::string_view piece(int32_t id) const;                 // "" for an id without a piece
  int32_t size() const { return int32_t(pieces_.size()); }  // largest id + 1
  size_t count() const { return sorted_.size(); }           // distinct pieces

  // Pieces with their ids, sorted by bytes, without repeats.
  const std::vector<std::pair<std::string_view, int32_t>>& sorted() const { return sorted_; }

 private:
  // returns a copy that lives as long as the vocabulary
  std::string_view keep(std::string_view piece);

  std::vector<std::unique_ptr<char[]>> blocks_;
  size_t block_left_ = 0;
  char* block_next_ = nullptr;
  std::vector<std::string_view> pieces_;  // by id
  std::vector<std::pair<std::string_view, int32_t>> added_;
  std::vector<std::pair<std::string_view, int32_t>> sorted_;
};

}  // namespace finetune

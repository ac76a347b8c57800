// Merges of byte pair encoding: pairs of tokens by rank, and the merging of one word.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace finetune::bpe {

// Ids of two neighbouring tokens -> rank and id of the merged token, in an open hash table.
class MergeTable {
 public:
  struct Merge {
    uint32_t rank = kNone;  // kNone: the pair is not merged
    int32_t id = -1;
  };
  static constexpr uint32_t kNone = UINT32_MAX;

  explicit MergeTable(size_t merges = 0);
  // Later merges have higher ranks; a pair that is added again takes the later rank.
  void add(int32_t left, int32_t right, uint32_t rank, int32_t id);
  Merge find(int32_t left, int32_t right) const {
    const uint64_t key = key_of(left, right);
    for (size_t at = home(key);; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at].key == key) return slots_[at].merge;
      if (slots_[at].key == kEmpty) return {};
    }
  }

 private:
  static constexpr uint64_t kEmpty = UINT64_MAX;
  struct Slot {
    uint64_t key = kEmpty;
    Merge merge;
  };
  static uint64_t key_of(int32_t left, int32_t right) {
    return uint64_t(uint32_t(left)) << 32 | uint32_t(right);
  }
  size_t home(uint64_t key) const {
    key = (key ^ key >> 29) * 0x9E3779B97F4A7C15u;
    return size_t(key >> 32) & (slots_.size() - 1);
  }

  std::vector<Slot> slots_;
};

// A token of a word: its id and its end, in bytes of the word.
struct Symbol {
  int32_t id;
  uint32_t end;
};

// Merges neighbouring symbols in place: always the pair of lowest rank, or the leftmost of equal
// rank, until no pair has a rank. Long words take n log n time.
void merge_symbols(const MergeTable& merges, std::vector<Symbol>& symbols);

}  // namespace finetune::bpe

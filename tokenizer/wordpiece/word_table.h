// A hash table of words up to 16 bytes: most words of a text are found in one probe.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace finetune {

// 16 bytes, zero-padded. Words contain no zero byte.
struct WordKey {
  uint64_t low = 0;
  uint64_t high = 0;
  friend bool operator==(const WordKey&, const WordKey&) = default;
};

class WordTable {
 public:
  static constexpr size_t kLongest = 16;

  explicit WordTable(size_t words = 0) : slots_(std::bit_ceil(words * 2 + 1)) {}

  static WordKey key(std::string_view word) {
    WordKey key;
    std::memcpy(&key.low, word.data(), word.size() < 8 ? word.size() : 8);
    if (word.size() > 8) std::memcpy(&key.high, word.data() + 8, word.size() - 8);
    return key;
  }
  // `word` must be new and not empty, and the capacity given to the constructor must not be
  // exceeded.
  void insert(std::string_view word, int32_t id) {
    WordKey k = key(word);
    size_t at = home(k);
    while (slots_[at].key.low != 0) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = {k, id};
  }
  int32_t find(const WordKey& key) const {  // -1 if absent
    for (size_t at = home(key);; at = (at + 1) & (slots_.size() - 1)) {
      const Slot& slot = slots_[at];
      if (slot.key == key) return slot.id;
      if (slot.key.low == 0) return -1;
    }
  }

 private:
  struct Slot {
    WordKey key;
    int32_t id = -1;
  };

  size_t home(const WordKey& key) const {
    uint64_t h = key.low * 0x9E3779B97F4A7C15u ^ key.high * 0xC2B2AE3D27D4EB4Fu;
    h = (h ^ h >> 32) * 0xD6E8FEB86659FD93u;
    return (h >> 32) & (slots_.size() - 1);
  }

  std::vector<Slot> slots_;
};

}  // namespace finetune

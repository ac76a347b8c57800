// A hash table of words up to 16 bytes: most words of a text are found in one probe.
#pragma once

#include <array>
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
  // Returns the key of `length` bytes at p, where 16 bytes may be read.
  static WordKey key_within(const char* p, size_t length) {
    WordKey key;
    std::memcpy(&key, p, sizeof key);
    key.low &= kMasks[length].low;
    key.high &= kMasks[length].high;
    return key;
  }
  // Mask n has ones in the bytes of a word of n bytes.
  static const std::array<WordKey, kLongest + 1> kMasks;

  // `word` must be new and not empty, and the capacity given to the constructor must not be
  // exceeded.
  void insert(std::string_view word, int32_t id) { insert(key(word), id); }
  void insert(const WordKey& k, int32_t id) {
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

inline constexpr std::array<WordKey, WordTable::kLongest + 1> WordTable::kMasks = [] {
  std::array<WordKey, kLongest + 1> masks{};
  for (size_t n = 0; n < masks.size(); ++n) {
    masks[n].low = n >= 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * n) - 1;
    masks[n].high = n >= 16 ? ~uint64_t{0} : n > 8 ? (uint64_t{1} << 8 * (n - 8)) - 1 : 0;
  }
  return masks;
}();

}  // namespace finetune

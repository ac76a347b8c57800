// The character map of a sentencepiece model: texts and what replaces them when text is normalized.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace finetune {

// Returns whether the model's normalization maps stay within their bounds: the library walks them
// without bounds checks. A model without maps passes.
bool has_sound_charsmaps(std::string_view model);

// A map consists of the trie's size (four bytes), the trie, and zero-terminated replacement texts.
// The trie is an array of 32-bit units (Darts-clone). From a unit, byte b leads to unit base ^ b.
// Where a key ends, the unit at the base holds the offset of its replacement.
class CharsMap {
 public:
  // Returns nothing if the map leaves its bounds, or its replacements are not UTF-8.
  static std::optional<CharsMap> read(std::string_view bytes);

  // Returns the replacement of the shortest key that begins `text`, or nothing.
  std::optional<std::string_view> find(std::string_view text) const {
    size_t at = base(0);
    for (char byte : text) {
      const size_t next = at ^ uint8_t(byte);
      if (byte == '\0' || label(next) != uint8_t(byte)) return std::nullopt;
      at = base(next);
      if (has_leaf(next)) return replacement(at);
    }
    return std::nullopt;
  }
  // Returns whether a key begins with `text`.
  bool begins_key(std::string_view text) const;
  // Calls found(first, last) for ranges of characters that find() replaces when they are alone.
  template <typename Found>
  void for_each_replaced_char(Found&& found) const {
    for (char32_t lead = 1; lead < 0xF5; ++lead) {
      if (lead >= 0x80 && lead < 0xC2) continue;
      const int behind = lead < 0x80 ? 0 : lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
      const char32_t bits = behind == 0 ? lead : lead & (0x3Fu >> behind);
      walk(base(0), uint8_t(lead), bits, behind, found);
    }
  }

 private:
  template <typename Found>
  void walk(size_t at, uint8_t byte, char32_t bits, int behind, Found&& found) const {
    const size_t next = at ^ byte;
    if (label(next) != byte) return;
    if (has_leaf(next)) {
      const int shift = 6 * behind;
      return found(bits << shift, (bits << shift) | ((char32_t{1} << shift) - 1));
    }
    if (behind == 0) return;
    for (uint8_t b = 0x80; b < 0xC0; ++b) {
      walk(base(next), b, bits << 6 | (b & 0x3Fu), behind - 1, found);
    }
  }

  uint32_t unit(size_t i) const {
    uint32_t unit;
    std::memcpy(&unit, &units_[i * sizeof unit], sizeof unit);
    return unit;
  }
  uint32_t label(size_t i) const { return unit(i) & (kIsValue | 0xFF); }
  bool has_leaf(size_t i) const { return (unit(i) & kHasLeaf) != 0; }
  // The base of unit i: byte b leads from unit i to unit base ^ b.
  size_t base(size_t i) const {
    const uint32_t u = unit(i);
    return i ^ size_t { (u >> 10) << ((u & (1 << 9)) >> 6) };
  }
  std::string_view replacement(size_t i) const { return texts_.c_str() + (unit(i) & ~kIsValue); }
  bool is_sound() const;

  static constexpr uint32_t kIsValue = uint32_t{1} << 31, kHasLeaf = 1 << 8;
  std::string units_, texts_;
};

}  // namespace finetune

// Checks every unit of the double-array tries in a sentencepiece model.
#include "tokenizer/sentencepiece/charsmap.h"

#include <cstdint>
#include <cstring>

#include "tokenizer/sentencepiece/model_fields.h"

namespace finetune {
namespace {

// A map consists of the trie's size (four bytes), the trie, and zero-terminated replacement texts.
// The trie is an array of 32-bit units (Darts-clone). From a unit, byte b leads to unit base ^ b.
// Where a key ends, the unit at the base holds the offset of its replacement.
class Trie {
 public:
  Trie(std::string_view units, std::string_view texts) : units_(units), texts_(texts) {}

  bool is_sound() const {
    constexpr size_t kBlock = 256;  // units reachable by one byte
    const size_t count = units_.size() / sizeof(uint32_t);
    if (units_.size() % (kBlock * sizeof(uint32_t)) != 0 || count == 0) return false;
    for (size_t i = 0; i < count; ++i) {
      constexpr uint32_t kValue = uint32_t{1} << 31, kHasLeaf = 1 << 8;
      const uint32_t unit = at(i);
      if (unit & kValue && i > 0) continue;  // no byte leads to a value unit; the root is unit 0
      const size_t base = i ^ size_t { (unit >> 10) << ((unit & (1 << 9)) >> 6) };
      if (base >= count) return false;
      if (unit & kHasLeaf && (at(base) & ~kValue) >= texts_.size()) return false;
    }
    return true;
  }

 private:
  uint32_t at(size_t i) const {
    uint32_t unit;
    std::memcpy(&unit, &units_[i * sizeof unit], sizeof unit);
    return unit;
  }

  std::string_view units_, texts_;
};

bool is_sound(std::string_view map) {
  uint32_t size = 0;
  if (map.size() <= sizeof size) return false;
  std::memcpy(&size, map.data(), sizeof size);
  map.remove_prefix(sizeof size);
  if (size >= map.size() || map.back() != '\0') return false;
  return Trie(map.substr(0, size), map.substr(size)).is_sound();
}

bool has_sound_map(std::string_view spec) {
  constexpr uint64_t kMap = 2;
  ProtoPart part;
  while (!spec.empty()) {
    if (!read_part(spec, part)) return false;
    if (part.number == kMap && !part.bytes.empty() && !is_sound(part.bytes)) return false;
  }
  return true;
}

}  // namespace

bool has_sound_charsmaps(std::string_view model) {
  ProtoPart part;
  while (!model.empty()) {
    if (!read_part(model, part)) return false;
    const bool is_spec = part.number == kNormalizerSpec || part.number == kDenormalizerSpec;
    if (is_spec && !has_sound_map(part.bytes)) return false;
  }
  return true;
}

}  // namespace finetune

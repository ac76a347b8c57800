// Checks every unit of the double-array tries in a sentencepiece model.
#include "tokenizer/sentencepiece/charsmap.h"

#include "core/text/utf8.h"
#include "tokenizer/sentencepiece/model_fields.h"

namespace finetune {
namespace {

bool has_sound_map(std::string_view spec) {
  ProtoPart part;
  while (!spec.empty()) {
    if (!read_part(spec, part)) return false;
    if (part.number == kCharsMap && !part.bytes.empty() && !CharsMap::read(part.bytes)) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::optional<CharsMap> CharsMap::read(std::string_view bytes) {
  uint32_t size = 0;
  if (bytes.size() <= sizeof size) return std::nullopt;
  std::memcpy(&size, bytes.data(), sizeof size);
  bytes.remove_prefix(sizeof size);
  if (size >= bytes.size() || bytes.back() != '\0') return std::nullopt;
  CharsMap map;
  map.units_ = bytes.substr(0, size);
  map.texts_ = bytes.substr(size);
  if (!map.is_sound() || !utf8::is_valid(map.texts_)) return std::nullopt;
  return map;
}

bool CharsMap::is_sound() const {
  constexpr size_t kBlock = 256;  // units reachable by one byte
  const size_t count = units_.size() / sizeof(uint32_t);
  if (units_.size() % (kBlock * sizeof(uint32_t)) != 0 || count == 0) return false;
  for (size_t i = 0; i < count; ++i) {
    if (unit(i) & kIsValue && i > 0) continue;  // no byte leads to a value unit; the root is unit 0
    const size_t at = base(i);
    if (at >= count) return false;
    if (has_leaf(i) && (unit(at) & ~kIsValue) >= texts_.size()) return false;
  }
  return true;
}

bool CharsMap::begins_key(std::string_view text) const {
  size_t at = base(0);
  for (char byte : text) {
    const size_t next = at ^ uint8_t(byte);
    if (label(next) != uint8_t(byte)) return false;
    at = base(next);
  }
  return true;
}

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

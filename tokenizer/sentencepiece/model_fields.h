// The fields of a sentencepiece model file, a protocol buffer (sentencepiece_model.proto).
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace finetune {

// Field numbers of the model and of its messages.
enum ModelField : uint64_t {
  kPiece = 1,
  kTrainerSpec = 2,
  kNormalizerSpec = 3,
  kDenormalizerSpec = 5
};
constexpr uint64_t kCharsMap = 2;  // a field of the normalizer spec

// Types of pieces, and the type of a unigram model.
enum PieceType : uint64_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kByte = 6 };
constexpr uint64_t kModelType = 3, kModelUnigram = 1;  // a field of the trainer spec; its value

struct ProtoPart {
  uint64_t number = 0;
  uint64_t value = 0;      // number
  std::string_view bytes;  // string or message
};

inline bool read_varint(std::string_view& in, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && !in.empty(); shift += 7) {
    uint8_t byte = uint8_t(in[0]);
    in.remove_prefix(1);
    value |= uint64_t(byte & 0x7F) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

// Reads the field at the front of `in` and moves `in` behind it. Returns false at the end or for
// invalid bytes.
inline bool read_part(std::string_view& in, ProtoPart& part) {
  uint64_t tag = 0;
  if (in.empty() || !read_varint(in, tag) || tag > UINT32_MAX) return false;
  part = {tag >> 3, 0, {}};
  size_t size = 0;
  switch (tag & 7) {
    case 0:
      return read_varint(in, part.value);
    case 1:
      size = 8;
      break;
    case 2:
      if (!read_varint(in, part.value)) return false;
      size = part.value;
      break;
    case 5:
      size = 4;
      break;
    default:
      return false;
  }
  if (size > in.size()) return false;
  part.bytes = in.substr(0, size);
  in.remove_prefix(size);
  if ((tag & 7) != 2) std::memcpy(&part.value, part.bytes.data(), size);
  return true;
}

}  // namespace finetune

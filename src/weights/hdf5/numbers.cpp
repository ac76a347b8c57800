// Converts numbers of any width and byte order to floats.
#include "weights/hdf5/numbers.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/error.h"
#include "core/numeric/dtype.h"

namespace finetune::hdf5 {
namespace {

template <typename Number, typename Convert>
void convert_all(const Type& type, const char* from, uint64_t count, float* out, Convert convert) {
  for (uint64_t i = 0; i < count; ++i) {
    char bytes[sizeof(Number)];
    std::memcpy(bytes, from + i * sizeof bytes, sizeof bytes);
    if (type.big_endian) std::reverse(bytes, bytes + sizeof bytes);
    Number value;
    std::memcpy(&value, bytes, sizeof value);
    out[i] = convert(value);
  }
}

template <typename Number>
void convert_plain(const Type& type, const char* from, uint64_t count, float* out) {
  convert_all<Number>(type, from, count, out, [](Number value) { return float(value); });
}

template <typename I1, typename I2, typename I4, typename I8>
void convert_integers(const Type& type, const char* from, uint64_t count, float* out) {
  if (type.size == 1) convert_plain<I1>(type, from, count, out);
  if (type.size == 2) convert_plain<I2>(type, from, count, out);
  if (type.size == 4) convert_plain<I4>(type, from, count, out);
  if (type.size == 8) convert_plain<I8>(type, from, count, out);
}

}  // namespace

bool is_number(const Type& type) {
  return type.kind != Type::Kind::text && type.kind != Type::Kind::other;
}

bool is_plain_float(const Type& type) {
  return type.kind == Type::Kind::real && type.size == sizeof(float) && !type.big_endian;
}

void to_floats(const Type& type, const char* from, uint64_t count, float* out) {
  switch (type.kind) {
    case Type::Kind::real:
      if (is_plain_float(type)) {
        std::memcpy(out, from, size_t(count) * sizeof(float));
      } else if (type.size == 4) {
        convert_plain<float>(type, from, count, out);
      } else if (type.size == 8) {
        convert_plain<double>(type, from, count, out);
      } else {
        convert_all<uint16_t>(type, from, count, out, half_to_float);
      }
      return;
    case Type::Kind::brain:
      convert_all<uint16_t>(type, from, count, out, [](uint16_t bits) {
        return std::bit_cast<float>(uint32_t(bits) << 16);
      });
      return;
    case Type::Kind::integer:
      return convert_integers<int8_t, int16_t, int32_t, int64_t>(type, from, count, out);
    case Type::Kind::natural:
      return convert_integers<uint8_t, uint16_t, uint32_t, uint64_t>(type, from, count, out);
    case Type::Kind::text:
    case Type::Kind::other:
      FINETUNE_CHECK(is_number(type));
  }
}

}  // namespace finetune::hdf5

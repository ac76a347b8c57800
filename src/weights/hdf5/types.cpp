// Parses the datatype and dataspace messages.
#include "weights/hdf5/types.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "core/numeric/dtype.h"

namespace finetune::hdf5 {
namespace {

constexpr const char* kType = "type";
constexpr const char* kSpace = "shape";
constexpr uint64_t kMostBytes = uint64_t(std::numeric_limits<int64_t>::max());

constexpr const char* kClasses[] = {"integer",     "float",           "time",     "text",
                                    "bit field",   "opaque",          "compound", "reference",
                                    "enumeration", "variable-length", "array",    "complex"};

// Bit layouts of the IEEE and bfloat16 formats.
struct FloatFormat {
  uint32_t size;
  uint8_t sign, exponent_at, exponent_bits, mantissa_bits;
  uint32_t bias;
  Type::Kind kind;
};
constexpr FloatFormat kFormats[] = {
    {2, 15, 10, 5, 10, 15, Type::Kind::real},
    {2, 15, 7, 8, 7, 127, Type::Kind::brain},
    {4, 31, 23, 8, 23, 127, Type::Kind::real},
    {8, 63, 52, 11, 52, 1023, Type::Kind::real},
};

// Whether the number uses all bits of its element.
bool is_whole(Cursor& at, uint32_t size) {
  const uint16_t offset = at.u16(), precision = at.u16();
  return offset == 0 && precision == 8 * size;
}

void parse_integer(Cursor& at, uint32_t flags, Type& type) {
  constexpr uint32_t kBigEndian = 1, kSigned = 8;
  if (!is_whole(at, type.size)) return;
  const bool known = type.size == 1 || type.size == 2 || type.size == 4 || type.size == 8;
  if (!known) return;
  type.kind = flags & kSigned ? Type::Kind::integer : Type::Kind::natural;
  type.big_endian = flags & kBigEndian;
}

void parse_float(Cursor& at, uint32_t flags, Type& type) {
  constexpr uint32_t kBigEndian = 1, kVax = 0x40, kNormalization = 0x30, kImpliedOne = 0x20;
  const uint8_t sign = uint8_t(flags >> 8);
  if (!is_whole(at, type.size) || flags & kVax || (flags & kNormalization) != kImpliedOne) return;
  const uint8_t exponent_at = at.u8(), exponent_bits = at.u8(), mantissa_at = at.u8(),
                mantissa_bits = at.u8();
  const uint32_t bias = at.u32();
  for (const FloatFormat& format : kFormats) {
    if (format.size == type.size && format.sign == sign && format.exponent_at == exponent_at &&
        format.exponent_bits == exponent_bits && mantissa_at == 0 &&
        format.mantissa_bits == mantissa_bits && format.bias == bias) {
      type.kind = format.kind;
      type.big_endian = flags & kBigEndian;
    }
  }
}

}  // namespace

Type parse_type(std::string_view message, Widths widths) {
  constexpr uint8_t kInteger = 0, kFloat = 1, kText = 3, kNewest = 5;
  Cursor at(message, widths, kType);
  const uint8_t head = at.u8(), version = head >> 4, kind = head & 15;
  if (version == 0 || version > kNewest || kind >= std::size(kClasses)) {
    throw fault("its ", kType, " is not known here");
  }
  const uint32_t flags = uint32_t(at.number(3));
  Type type;
  type.size = at.u32();
  type.name = kClasses[kind];
  if (type.size == 0) throw fault("its ", kType, " is damaged");
  if (kind == kInteger) parse_integer(at, flags, type);
  if (kind == kFloat) parse_float(at, flags, type);
  if (kind == kText) type.kind = Type::Kind::text;
  return type;
}

Space parse_space(std::string_view message, Widths widths) {
  constexpr uint8_t kHasMost = 1, kPermuted = 2, kNull = 2, kMostDimensions = 32;
  Cursor at(message, widths, kSpace);
  const uint8_t version = at.u8(), rank = at.u8(), flags = at.u8(), type = at.u8();
  if (version != 1 && version != 2) throw fault("its ", kSpace, " is of version ", version);
  if (version == 1) at.skip(4);
  if (rank > kMostDimensions || (version == 1 && flags & kPermuted) || (version == 2 && type > 2)) {
    throw fault("its ", kSpace, " is damaged");
  }
  Space space;
  space.is_null = version == 2 && type == kNull;
  for (int i = 0; i < rank; ++i) {
    const uint64_t size = at.length();
    if (size > kMostBytes) throw fault("its ", kSpace, " has a dimension of ", size);
    space.shape.push_back(int64_t(size));
  }
  if (!(flags & kHasMost)) return space;
  for (int i = 0; i < rank; ++i) {
    const uint64_t most = at.length();
    const bool unbounded = most == kUndefined >> (64 - 8 * widths.length);
    if (!unbounded && (most > kMostBytes || most < uint64_t(space.shape[size_t(i)]))) {
      throw fault("its ", kSpace, " is damaged");
    }
  }
  return space;
}

uint64_t bytes_of(const std::vector<int64_t>& shape, uint64_t element_size) {
  uint64_t bytes = element_size;
  bool overflows = false, is_empty = false;
  for (int64_t dimension : shape) {
    is_empty |= dimension == 0;  // still check the other dimensions: strides use them
    const uint64_t factor = dimension == 0 ? 1 : uint64_t(dimension);
    overflows |= __builtin_mul_overflow(bytes, factor, &bytes) || bytes > kMostBytes;
  }
  return overflows ? kUndefined : is_empty ? 0 : bytes;
}

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

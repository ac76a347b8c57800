// Writes safetensors files byte for byte as the reference implementation does. Tensors of one dtype
// are sorted by name, the metadata is {"format":"pt"} (transformers refuses files without it), and
// the header is padded with blanks to a multiple of 8.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/error.h"
#include "core/files/files.h"
#include "core/sha256.h"
#include "core/text/json_value.h"
#include "weights/stored_tensor.h"
#include "weights/weights.h"

namespace finetune {
namespace {

constexpr int64_t kSlab = int64_t{1} << 16;  // elements converted at a time

std::string_view stored_name(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "F32";
    case DType::f16:
      return "F16";
    case DType::bf16:
      return "BF16";
    default:
      break;
  }
  throw internal_error("weights are written as f32, f16 or bf16, not ", name_of(dtype));
}

// Indices of the tensors, sorted by name.
std::vector<size_t> order_of(const std::vector<WeightShape>& tensors) {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return tensors[a].name < tensors[b].name; });
  for (size_t i = 1; i < order.size(); ++i) {
    FINETUNE_CHECK(tensors[order[i - 1]].name != tensors[order[i]].name);
  }
  return order;
}

uint64_t count_of(const WeightShape& tensor) {
  const std::optional<int64_t> count = element_count(tensor.shape);
  FINETUNE_CHECK(count.has_value() && !tensor.shape.empty());
  return uint64_t(*count);
}

std::string header_of(const std::vector<WeightShape>& tensors, const std::vector<size_t>& order,
                      DType dtype) {
  std::string json = R"({"__metadata__":{"format":"pt"})";
  uint64_t offset = 0;
  for (size_t i : order) {
    const uint64_t end = offset + count_of(tensors[i]) * size_of(dtype);
    json += concat(",", JsonValue(tensors[i].name).text(), ":{\"dtype\":\"", stored_name(dtype),
                   "\",\"shape\":", JsonValue(tensors[i].shape).text(), ",\"data_offsets\":[",
                   offset, ",", end, "]}");
    offset = end;
  }
  json += "}";
  json.resize((json.size() + 7) / 8 * 8, ' ');
  uint64_t size = json.size();
  std::string header(8, '\0');
  std::memcpy(header.data(), &size, 8);
  return header + json;
}

// Passes the file's bytes to `sink(data, size)` in order.
template <typename Sink>
void stream(const std::vector<WeightShape>& tensors, const WeightRows& rows, DType dtype,
            Sink&& sink) {
  const std::vector<size_t> order = order_of(tensors);
  const std::string header = header_of(tensors, order, dtype);
  sink(header.data(), header.size());
  std::vector<uint16_t> block(dtype == DType::f32 ? 0 : size_t(kSlab));
  for (size_t i : order) {
    const std::vector<int64_t>& shape = tensors[i].shape;
    const int64_t total = int64_t(count_of(tensors[i]));
    if (total == 0) continue;
    each_slab(shape, [&](int64_t first, int64_t count) {
      const float* values = rows(i, first, count);
      const int64_t elements = total / shape[0] * count;
      for (int64_t begin = 0; begin < elements; begin += kSlab) {
        const size_t length = size_t(std::min(kSlab, elements - begin));
        if (dtype == DType::f32) {
          sink(values + begin, length * 4);
          continue;
        }
        for (size_t k = 0; k < length; ++k) {
          const float value = values[size_t(begin) + k];
          block[k] = dtype == DType::f16 ? float_to_half(value) : bfloat16(value).bits;
        }
        sink(block.data(), length * 2);
      }
    });
  }
}

std::vector<WeightShape> shapes_of(const std::vector<WeightView>& tensors) {
  std::vector<WeightShape> shapes;
  for (const WeightView& tensor : tensors) shapes.push_back({tensor.name, tensor.shape});
  return shapes;
}

WeightRows rows_of(const std::vector<WeightView>& tensors) {
  return [&tensors](size_t i, int64_t first, int64_t) {
    const std::vector<int64_t>& shape = tensors[i].shape;
    return tensors[i].data + element_count(shape).value_or(0) / shape[0] * first;
  };
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, const std::vector<WeightShape>& tensors,
                       const WeightRows& rows, DType dtype) {
  uint64_t bytes = header_of(tensors, order_of(tensors), dtype).size();
  for (const WeightShape& tensor : tensors) bytes += count_of(tensor) * size_of(dtype);
  require_free_space(parent_of(path), bytes, path.filename().string());
  AtomicFile file(path);
  stream(tensors, rows, dtype, [&](const void* data, size_t size) { file.write(data, size); });
  file.commit();
}

std::string safetensors_sha256(const std::vector<WeightShape>& tensors, const WeightRows& rows,
                               DType dtype) {
  Sha256 hash;
  stream(tensors, rows, dtype, [&](const void* data, size_t size) { hash.update(data, size); });
  return hash.hex();
}

void write_safetensors(const std::filesystem::path& path, const std::vector<WeightView>& tensors,
                       DType dtype) {
  write_safetensors(path, shapes_of(tensors), rows_of(tensors), dtype);
}

std::string safetensors_sha256(const std::vector<WeightView>& tensors, DType dtype) {
  return safetensors_sha256(shapes_of(tensors), rows_of(tensors), dtype);
}

}  // namespace finetune

// Writes safetensors files byte for byte as the reference implementation does.
// Tensors of one dtype sorted by name, metadata {"format":"pt"} (transformers refuses files
// without), header padded with blanks to a multiple of 8.
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/files.h"
#include "core/sha256.h"
#include "weights/stored_tensor.h"
#include "weights/weights.h"

namespace finetune {
namespace {

constexpr int64_t kBlock = int64_t{1} << 16;  // elements converted at once

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

std::vector<const WeightView*> sorted_by_name(const std::vector<WeightView>& tensors) {
  std::vector<const WeightView*> sorted;
  for (const WeightView& tensor : tensors) sorted.push_back(&tensor);
  std::sort(sorted.begin(), sorted.end(),
            [](const WeightView* a, const WeightView* b) { return a->name < b->name; });
  for (size_t i = 1; i < sorted.size(); ++i) FINETUNE_CHECK(sorted[i - 1]->name != sorted[i]->name);
  return sorted;
}

std::string header_of(const std::vector<const WeightView*>& tensors, DType dtype) {
  std::string json = R"({"__metadata__":{"format":"pt"})";
  uint64_t offset = 0;
  for (const WeightView* tensor : tensors) {
    std::optional<int64_t> count = element_count(tensor->shape);
    FINETUNE_CHECK(count.has_value());
    uint64_t end = offset + uint64_t(*count) * size_of(dtype);
    json += concat(",", nlohmann::json(tensor->name).dump(), ":{\"dtype\":\"", stored_name(dtype),
                   "\",\"shape\":", nlohmann::json(tensor->shape).dump(), ",\"data_offsets\":[",
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

// Gives the file's bytes to `sink(data, size)` in order.
template <typename Sink>
void stream(const std::vector<WeightView>& tensors, DType dtype, Sink&& sink) {
  auto sorted = sorted_by_name(tensors);
  std::string header = header_of(sorted, dtype);
  sink(header.data(), header.size());
  std::vector<uint16_t> block(dtype == DType::f32 ? 0 : size_t(kBlock));
  for (const WeightView* tensor : sorted) {
    const int64_t count = element_count(tensor->shape).value_or(0);
    for (int64_t begin = 0; begin < count; begin += kBlock) {
      const float* values = tensor->data + begin;
      const size_t length = size_t(std::min(kBlock, count - begin));
      if (dtype == DType::f32) {
        sink(values, length * 4);
        continue;
      }
      for (size_t i = 0; i < length; ++i) {
        block[i] = dtype == DType::f16 ? float_to_half(values[i]) : bfloat16(values[i]).bits;
      }
      sink(block.data(), length * 2);
    }
  }
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, const std::vector<WeightView>& tensors,
                       DType dtype) {
  uint64_t bytes = header_of(sorted_by_name(tensors), dtype).size();
  for (const WeightView& tensor : tensors) {
    bytes += uint64_t(element_count(tensor.shape).value_or(0)) * size_of(dtype);
  }
  std::filesystem::path directory = path.parent_path();
  require_free_space(directory.empty() ? "." : directory, bytes, path.filename().string());
  AtomicFile file(path);
  stream(tensors, dtype, [&](const void* data, size_t size) { file.write(data, size); });
  file.commit();
}

std::string safetensors_sha256(const std::vector<WeightView>& tensors, DType dtype) {
  Sha256 hash;
  stream(tensors, dtype, [&](const void* data, size_t size) { hash.update(data, size); });
  return hash.hex();
}

}  // namespace finetune

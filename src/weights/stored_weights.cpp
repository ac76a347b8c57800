// Finds tensors by canonical name, reads them, and refuses NaN and infinity.
#include "weights/stored_weights.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <unordered_map>

#include "core/error.h"
#include "core/threads/parallel.h"
#include "weights/name_prefix.h"
#include "weights/names.h"
#include "weights/tensorflow/crc32c.h"

namespace finetune {
namespace {

constexpr size_t kMostTensors = 100'000;

// The index of the first NaN or infinity, or -1.
int64_t first_not_finite(const float* values, int64_t count) {
  constexpr uint32_t kExponent = 0x7F800000u;
  constexpr int64_t kGrain = int64_t{1} << 18;
  std::atomic<bool> found = false;
  parallel_ranges(count, kGrain, [&](int64_t begin, int64_t end) {
    uint32_t any = 0;
    for (int64_t i = begin; i < end; ++i) {
      any |= uint32_t((std::bit_cast<uint32_t>(values[i]) & kExponent) == kExponent);
    }
    if (any) found = true;
  });
  if (!found) return -1;
  return std::find_if(values, values + count, [](float v) { return !std::isfinite(v); }) - values;
}

}  // namespace

const WeightInfo* WeightSource::find(std::string_view canonical_name) const {
  auto found = by_name_.find(canonical_name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

std::string WeightSource::remark() const {
  std::vector<std::string> parts;
  if (!entry_.empty()) parts.push_back(concat("tensors are read from its entry ", entry_));
  if (!removed_prefix_.empty()) {
    parts.push_back(concat("the prefix ", in_quotes(removed_prefix_, 80), " of names is left out"));
  }
  if (has_inner_wrappers_) parts.emplace_back("modules that FSDP put into names are left out");
  return parts.empty() ? "" : concat(path_.string(), ": ", join(parts, "; "));
}

StoredWeights::StoredWeights(std::filesystem::path path, std::string format,
                             std::vector<std::filesystem::path> files, std::vector<MappedFile> maps,
                             std::vector<StoredTensor> tensors, const TensorNames& names,
                             std::string entry)
    : maps_(std::move(maps)) {
  for (const MappedFile& map : maps_) map.check_intact();  // after their structure has been read
  path_ = std::move(path);
  format_ = std::move(format);
  files_ = std::move(files);
  entry_ = std::move(entry);
  if (tensors.size() > kMostTensors) {
    throw model_error(path_.string(), ": holds ", tensors.size(),
                      " tensors; no encoder has more than ", kMostTensors);
  }
  std::vector<std::string> stored;
  for (const StoredTensor& tensor : tensors) {
    const bool is_as_stored = names.base_prefix.empty();
    stored.push_back(is_as_stored ? tensor.name : without_inner_wrappers(tensor.name));
    has_inner_wrappers_ |= stored.back() != tensor.name;
  }
  NamePrefix prefix = find_name_prefix(stored, names);
  removed_prefix_ = std::move(prefix.removed);
  name_advice_ = std::move(prefix.advice);
  auto canonical = canonical_names(stored, names, removed_prefix_);
  std::unordered_map<std::string, size_t> seen;
  for (size_t i = 0; i < tensors.size(); ++i) {
    WeightInfo info{canonical[i].value_or(""), tensors[i].stored_name, tensors[i].shape,
                    tensors[i].dtype};
    if (!canonical[i]) {
      ignored_.push_back(std::move(info));
      continue;
    }
    const auto [other, is_new] = seen.emplace(info.name, tensors_.size());
    if (!is_new) {
      throw model_error(path_.string(), ": tensors ",
                        in_quotes(tensors_[other->second].stored_name), " and ",
                        in_quotes(info.stored_name), " are both ", in_quotes(info.name));
    }
    tensors_.push_back(std::move(info));
    stored_.push_back(std::move(tensors[i]));
  }
  for (size_t i = 0; i < tensors_.size(); ++i) by_name_[tensors_[i].name] = i;
}

// PyTorch saves tensors as views of storages, and tied tensors (such as an unused pre-training head
// and the word embedding) share one. So a file of some kilobytes could name tensors of any size.
void StoredWeights::require_own_bytes(const std::vector<const WeightInfo*>& wanted) const {
  std::vector<std::pair<const uint8_t*, const uint8_t*>> ranges;
  uint64_t claimed = 0, held = 0;
  for (const WeightInfo* info : wanted) {
    const StoredTensor& tensor = stored(*info);
    if (tensor.data == nullptr) continue;  // empty, or read by other means
    claimed += uint64_t(element_count(tensor.shape).value_or(0)) * size_of(tensor.dtype);
    ranges.emplace_back(tensor.data, tensor.data + bytes_spanned(tensor));
  }
  std::sort(ranges.begin(), ranges.end());
  const uint8_t* end = nullptr;
  for (const auto& [first, last] : ranges) {
    const uint8_t* begin = std::max(first, end);
    if (begin < last) held += uint64_t(last - begin);
    end = std::max(end, last);
  }
  if (claimed <= held) return;
  throw model_error(path_.string(), ": the ", wanted.size(), " tensors that the model needs take ",
                    claimed, " bytes, but only ", held,
                    " bytes of the file hold them: tensors share their data. Save the model with "
                    "a copy for each of them (in PyTorch: tensor.clone())");
}

const StoredTensor& StoredWeights::stored(const WeightInfo& info) const {
  const WeightInfo* own = find(info.name);
  FINETUNE_CHECK(own != nullptr);
  return stored_[size_t(own - tensors_.data())];
}

void StoredWeights::read(const WeightInfo& info, float* out) const {
  const StoredTensor& tensor = stored(info);
  for (const MappedFile& map : maps_) {
    if (!map.holds(tensor.data)) continue;
    map.read_intact([&] { copy(tensor, out); });
    return map.release(tensor.data, bytes_spanned(tensor));
  }
  copy(tensor, out);
}

void StoredWeights::copy(const StoredTensor& tensor, float* out) const {
  if (tensor.crc32c) {
    size_t bytes = size_t(element_count(tensor.shape).value_or(0)) * size_of(tensor.dtype);
    if (masked_crc32c(tensor.data, bytes) != *tensor.crc32c) {
      throw model_error(path_.string(), ": the data of tensor ", in_quotes(tensor.stored_name),
                        " do not match their checksum: the file is damaged, fetch it again");
    }
  }
  copy_as_float(tensor, out);
}

void require_floating(const WeightSource& source, const WeightInfo& info) {
  constexpr DType kFloating[] = {DType::f32, DType::f16, DType::bf16, DType::f64};
  if (std::find(std::begin(kFloating), std::end(kFloating), info.dtype) != std::end(kFloating))
    return;
  throw model_error(source.path().string(), ": tensor ", in_quotes(info.stored_name, 200),
                    " holds ", name_of(info.dtype), ", weights are floating-point numbers");
}

const WeightInfo& checked_tensor(const WeightSource& source, std::string_view name,
                                 const std::vector<int64_t>& shape) {
  const WeightInfo* info = source.find(name);
  if (!info) {
    const std::string& advice = source.name_advice();
    throw model_error(source.path().string(), ": tensor ", in_quotes(name, 200), " is missing (",
                      source.tensors().size(), " others are there)", advice.empty() ? "" : ": ",
                      advice);
  }
  if (info->shape != shape) {
    throw model_error(source.path().string(), ": tensor ", in_quotes(info->stored_name, 200),
                      " has shape ", shape_text(info->shape), ", the config asks for ",
                      shape_text(shape));
  }
  require_floating(source, *info);
  return *info;
}

void read_tensor(const WeightSource& source, std::string_view name,
                 const std::vector<int64_t>& shape, float* out) {
  const WeightInfo& info = checked_tensor(source, name, shape);
  source.read(info, out);
  const int64_t fault = first_not_finite(out, element_count(shape).value_or(0));
  if (fault >= 0) {
    throw model_error(source.path().string(), ": tensor ", in_quotes(info.stored_name, 200),
                      " holds ", out[fault], " at element ", fault,
                      ": these weights cannot be used");
  }
}

}  // namespace finetune

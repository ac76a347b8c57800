// Copies training arrays into one block that processes can share.
#include "tasks/objective.h"

#include <array>
#include <cstring>
#include <new>

#include "core/error.h"
#include "core/sha256.h"

namespace finetune {
namespace {

constexpr uint64_t kMagic = 0x7379617272417446;  // "FtArrays"
constexpr uint64_t kVersion = 4;
constexpr size_t kAlignment = 64;
constexpr size_t kArrays = 12;

// A block is this header, followed by the arrays in the order of for_each_array, each aligned.
struct BlockHeader {
  uint64_t magic = kMagic;
  uint64_t version = kVersion;
  int64_t kind = 0;
  int64_t problem = 0;
  int64_t head = 0;
  int64_t outputs = 0;
  double label_smoothing = 0;
  TargetScale target_scale;
  MaskingOptions masking;
  std::array<uint64_t, kArrays> counts{};
};

// Arrays is TrainingArrays, const or not.
template <typename Arrays, typename Function>
void for_each_array(Arrays& arrays, Function&& function) {
  function(arrays.samples.ids);
  function(arrays.samples.offsets);
  function(arrays.samples.second);
  function(arrays.labels);
  function(arrays.ends);
  function(arrays.targets);
  function(arrays.set_offsets);
  function(arrays.set_ids);
  function(arrays.class_weights);
  function(arrays.sample_weights);
  function(arrays.word_kinds);
  function(arrays.head_rows);
}

size_t aligned(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

bool is_aligned(const void* block) {
  return reinterpret_cast<uintptr_t>(block) % kAlignment == 0;
}

BlockHeader header_of(const TrainingArrays& arrays) {
  BlockHeader header;
  header.kind = int64_t(arrays.kind);
  header.problem = int64_t(arrays.problem);
  header.head = int64_t(arrays.head.kind);
  header.outputs = arrays.head.outputs;
  header.label_smoothing = double(arrays.label_smoothing);
  header.target_scale = arrays.target_scale;
  header.masking = arrays.masking;
  size_t i = 0;
  for_each_array(arrays, [&](const auto& array) { header.counts.at(i++) = array.size(); });
  return header;
}

}  // namespace

size_t block_bytes(const TrainingArrays& arrays) {
  size_t bytes = aligned(sizeof(BlockHeader));
  for_each_array(arrays, [&](const auto& array) { bytes += aligned(array.size_bytes()); });
  return bytes;
}

TrainingArrays copy_arrays(const TrainingArrays& arrays, void* block) {
  FINETUNE_CHECK(is_aligned(block));
  new (block) BlockHeader(header_of(arrays));
  char* place = static_cast<char*>(block) + aligned(sizeof(BlockHeader));
  for_each_array(arrays, [&](const auto& array) {
    if (!array.empty()) std::memcpy(place, array.data(), array.size_bytes());
    place += aligned(array.size_bytes());
  });
  return arrays_in(block);
}

TrainingArrays arrays_in(const void* block) {
  FINETUNE_CHECK(is_aligned(block));
  const BlockHeader& header = *static_cast<const BlockHeader*>(block);
  FINETUNE_CHECK(header.magic == kMagic);
  FINETUNE_CHECK(header.version == kVersion);
  TrainingArrays arrays;
  arrays.kind = TaskKind(header.kind);
  arrays.problem = ProblemType(header.problem);
  arrays.head = {HeadKind(header.head), header.outputs};
  arrays.label_smoothing = float(header.label_smoothing);
  arrays.target_scale = header.target_scale;
  arrays.masking = header.masking;
  const char* place = static_cast<const char*>(block) + aligned(sizeof(BlockHeader));
  size_t i = 0;
  for_each_array(arrays, [&]<typename T>(std::span<const T>& array) {
    const size_t count = header.counts.at(i++);
    if (count > 0) array = {reinterpret_cast<const T*>(place), count};
    place += aligned(array.size_bytes());
  });
  return arrays;
}

std::string digest_of(const TrainingArrays& arrays) {
  Sha256 sum;
  for_each_array(arrays, [&](const auto& array) {
    const uint64_t bytes = array.size_bytes();
    sum.update(&bytes, sizeof bytes);
    sum.update(array.data(), bytes);
  });
  return sum.hex();
}

}  // namespace finetune

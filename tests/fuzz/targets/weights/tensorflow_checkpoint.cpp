// TensorFlow 1 checkpoints: the index, whose blocks have checksums, and the data.
#include <cstring>
#include <optional>

#include "fuzz/targets/weights/weight_checks.h"
#include "weights/stored_weights.h"
#include "weights/tensorflow/crc32c.h"
#include "weights/tensorflow/protobuf.h"

namespace finetune::fuzz {
namespace {

void check_tensors(std::string_view input) {
  const auto parts = parts_of(input, 2);
  scratch_file("bert_model.ckpt.data-00000-of-00001", parts[1]);
  check_weights(
      open_checkpoint(scratch_file("bert_model.ckpt.index", parts[0]), {.base_prefix = "bert."}));
}

struct Block {
  uint64_t offset = 0, size = 0;
};

std::optional<Block> take_block(std::string_view& bytes) {
  const auto offset = take_varint(bytes);
  const auto size = offset ? take_varint(bytes) : std::nullopt;
  if (!size) return std::nullopt;
  return Block{*offset, *size};
}

// Writes the checksum behind a block, if it lies in the table.
bool mend_block(std::string& bytes, size_t table, const Block& block) {
  constexpr uint64_t kTrailer = 5;
  if (block.offset > table || block.size > table - block.offset ||
      table - block.offset - block.size < kTrailer) {
    return false;
  }
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data()) + block.offset;
  const uint32_t sum = masked_crc32c(data, size_t(block.size) + 1);
  std::memcpy(&bytes[size_t(block.offset + block.size) + 1], &sum, sizeof sum);
  return true;
}

// The blocks that the footer and, behind it, the index's entries name.
void mend_tensors(const std::string&, std::string& changed) {
  constexpr size_t kFooter = 48;
  const size_t table = parts_of(changed, 2)[0].size();
  if (table < kFooter) return;
  const std::string footer = changed.substr(table - kFooter, kFooter);
  std::string_view handles = footer;
  take_block(handles);
  const std::optional<Block> index = take_block(handles);
  if (!index || !mend_block(changed, table, *index)) return;
  const std::string entries = changed.substr(size_t(index->offset), size_t(index->size));
  for (std::string_view rest = entries; !rest.empty();) {
    take_varint(rest);
    const auto key = take_varint(rest);
    const auto value = key ? take_varint(rest) : std::nullopt;
    if (!value || *key > rest.size() || *value > rest.size() - *key) return;
    std::string_view handle = rest.substr(size_t(*key), size_t(*value));
    if (const auto block = take_block(handle)) mend_block(changed, table, *block);
    rest.remove_prefix(size_t(*key + *value));
  }
}

const Registration kTensorflowCheckpointTarget({.name = "tensorflow_checkpoint",
                                                .run = check_tensors,
                                                .memory = size_t{128} << 20,
                                                .mend = mend_tensors});

}  // namespace
}  // namespace finetune::fuzz

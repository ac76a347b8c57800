// Targets of readers of pretrained weights.
#include "weights/weights.h"

#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "fuzz/target.h"
#include "unit/weights/hdf5_sums.h"
#include "weights/stored_tensor.h"
#include "weights/stored_weights.h"
#include "weights/tensorflow/crc32c.h"
#include "weights/tensorflow/protobuf.h"
#include "weights/torch/torch_tensors.h"

namespace finetune::fuzz {
namespace {

// Properties of opened weights.

// Reads all tensors, like a model that needs each of them.
std::vector<std::vector<float>> read_all(const WeightSource& source) {
  std::vector<const WeightInfo*> wanted;
  std::set<std::string_view> names;
  for (const WeightInfo& info : source.tensors()) {
    require(names.insert(info.name).second, "two tensors are ", in_quotes(info.name));
    require(source.find(info.name) == &info, in_quotes(info.name), " is not found by its name");
    require(element_count(info.shape).has_value(), in_quotes(info.name), " has no size");
    wanted.push_back(&info);
  }
  source.require_own_bytes(wanted);
  std::vector<std::vector<float>> values;
  for (const WeightInfo* info : wanted) {
    values.emplace_back(size_t(*element_count(info->shape)));
    source.read(*info, values.back().data());
  }
  return values;
}

void check_weights(const std::unique_ptr<WeightSource>& source) {
  require(source != nullptr, "no weights and no error");
  read_all(*source);
}

// safetensors: reading what was written gives the same.
void check_safetensors(std::string_view input) {
  const auto source =
      open_safetensors(scratch_file("model.safetensors", input), {.base_prefix = "bert."});
  const std::vector<std::vector<float>> values = read_all(*source);
  std::vector<WeightView> views;
  for (size_t i = 0; i < values.size(); ++i) {
    const WeightInfo& info = source->tensors()[i];
    if (!info.shape.empty()) views.push_back({info.name, info.shape, values[i].data()});
  }
  if (views.empty()) return;
  const fs::path copy = scratch_directory() / "copy.safetensors";
  write_safetensors(copy, views, DType::f32);
  const auto again = open_safetensors(copy, {});
  for (const WeightInfo& info : again->tensors()) {
    const auto same = [&](const WeightView& view) { return view.name == info.stored_name; };
    const auto view = std::find_if(views.begin(), views.end(), same);
    require(view != views.end() && view->shape == info.shape, in_quotes(info.stored_name),
            " is not what was written");
    std::vector<float> found(size_t(*element_count(info.shape)));
    again->read(info, found.data());
    require(found.empty() || std::memcmp(found.data(), view->data, found.size() * 4) == 0,
            in_quotes(info.stored_name), " has other values than were written");
  }
}

const Registration kSafetensorsTarget({.name = "safetensors", .run = check_safetensors});

// Sharded weights: the index, then the shards that it may name.
void check_shard_index(std::string_view input) {
  const auto parts = parts_of(input, 3);
  scratch_file("a.safetensors", parts[1]);
  scratch_file("b.bin", parts[2]);
  check_weights(open_shard_index(scratch_file("model.safetensors.index.json", parts[0]),
                                 {.base_prefix = "bert."}));
}

const Registration kShardIndexTarget({.name = "shard_index", .run = check_shard_index});

// tf_model.h5: HDF5 as Keras writes it.
void check_keras(std::string_view input) {
  const fs::path path = scratch_file("tf_model.h5", input);
  check_weights(open_keras(path, {.base_prefix = "bert."}));
}

void mend_keras(const std::string& before, std::string& changed) {
  test::mend_sums(before, changed);
}

const Registration kKerasHdf5Target({.name = "keras_hdf5", .run = check_keras, .mend = mend_keras});

// pytorch_model.bin as a zip archive.
void check_torch_zip(std::string_view input) {
  check_weights(open_torch_zip(scratch_file("pytorch_model.bin", input), {.base_prefix = "bert."}));
}

const Registration kTorchZipTarget({.name = "torch_zip", .run = check_torch_zip});

// pytorch_model.bin as pickles one after the other.
void check_torch_legacy(std::string_view input) {
  check_weights(
      open_torch_legacy(scratch_file("pytorch_model.bin", input), {.base_prefix = "bert."}));
}

const Registration kTorchLegacyTarget({.name = "torch_legacy", .run = check_torch_legacy});

// One pickle, and the tensors that it describes of storages of zeros.
constexpr size_t kStorage = 4096;

void check_pickle(std::string_view input) {
  Unpickler unpickler("pickle", input);
  const PickleValue& root = unpickler.run();
  require(unpickler.position() <= input.size(), "the pickle ends outside its bytes");
  const std::string storage(kStorage, '\0');
  const auto tensors =
      torch_tensors("pickle", root, [&](const PickleValue&) { return std::string_view(storage); });
  for (const StoredTensor& tensor : tensors) {
    const auto count = element_count(tensor.shape);
    require(count && uint64_t(*count) <= kStorage, "a tensor is larger than its storage");
    std::vector<float> values(size_t(*count), 1);
    copy_as_float(tensor, values.data());
    for (float value : values) require(value == 0, "a tensor lies outside its storage");
  }
}

// Four million operations at most, each of which may make a value.
const Registration kPickleTarget({.name = "pickle",
                                  .run = check_pickle,
                                  .memory = size_t{1} << 30});

// TensorFlow 1 checkpoints: the index, whose blocks have checksums, and the data.
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

// Reads TensorFlow 1 checkpoints (tensorflow/core/protobuf/tensor_bundle.proto). <prefix>.index is
// a LevelDB table from variable names to BundleEntryProto; the data are in
// <prefix>.data-SSSSS-of-NNNNN.
#include <cstdio>

#include "core/error.h"
#include "weights/names.h"
#include "weights/stored_weights.h"
#include "weights/tensorflow/leveldb_table.h"
#include "weights/tensorflow/protobuf.h"

namespace finetune {
namespace {

constexpr size_t kMostVariables = 300'000;  // each weight may have two moments

struct BundleEntry {
  uint64_t dtype = 0;
  std::vector<int64_t> shape;
  uint64_t shard = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
  std::optional<uint32_t> crc32c;
  bool sliced = false;
};

bool parse_shape(std::string_view message, std::vector<int64_t>& shape) {
  bool valid = true;
  bool read = for_each_field(message, [&](const ProtoField& field) {
    if (field.number != 2) return;
    int64_t size = 0;
    valid &= for_each_field(field.bytes, [&](const ProtoField& dimension) {
      if (dimension.number == 1) size = int64_t(dimension.value);
    });
    valid &= size >= 0 && shape.size() < 8;
    if (valid) shape.push_back(size);
  });
  return read && valid;
}

std::optional<BundleEntry> parse_entry(std::string_view message) {
  BundleEntry entry;
  bool valid = true;
  bool read = for_each_field(message, [&](const ProtoField& field) {
    switch (field.number) {
      case 1:
        entry.dtype = field.value;
        break;
      case 2:
        valid &= parse_shape(field.bytes, entry.shape);
        break;
      case 3:
        entry.shard = field.value;
        break;
      case 4:
        entry.offset = field.value;
        break;
      case 5:
        entry.size = field.value;
        break;
      case 6:
        entry.crc32c = uint32_t(field.value);
        break;
      case 7:
        entry.sliced = true;
        break;
      default:
        break;
    }
  });
  if (!read || !valid) return std::nullopt;
  return entry;
}

// Values of tensorflow/core/framework/types.proto.
std::optional<DType> dtype_of(uint64_t number) {
  switch (number) {
    case 1:
      return DType::f32;
    case 2:
      return DType::f64;
    case 3:
      return DType::i32;
    case 4:
      return DType::u8;
    case 9:
      return DType::i64;
    case 14:
      return DType::bf16;
    case 19:
      return DType::f16;
    default:
      return std::nullopt;
  }
}

class CheckpointReader {
 public:
  explicit CheckpointReader(const std::filesystem::path& index) : index_(index) {}

  std::unique_ptr<WeightSource> open(const TensorNames& names) {
    const std::string index = read_text_file(index_, ExitCode::model);
    std::vector<TableEntry> table = read_table(index_.string(), index);
    if (table.empty() || !table[0].key.empty()) throw fault("has no header");
    if (table.size() > kMostVariables) {
      throw fault("holds ", table.size() - 1, " variables; no BERT has more than ", kMostVariables);
    }
    open_shards(table[0].value);
    std::vector<StoredTensor> tensors;
    std::vector<WeightInfo> skipped;
    for (size_t i = 1; i < table.size(); ++i) add(table[i], tensors, skipped);
    auto weights =
        std::make_unique<CheckpointWeights>(index_, "tensorflow 1 checkpoint", std::move(files_),
                                            std::move(shards_), std::move(tensors), names);
    weights->add_ignored(std::move(skipped));
    return weights;
  }

 private:
  class CheckpointWeights : public StoredWeights {
   public:
    using StoredWeights::StoredWeights;
    void add_ignored(std::vector<WeightInfo> infos) {
      ignored_.insert(ignored_.end(), infos.begin(), infos.end());
    }
  };

  template <typename... Parts>
  Error fault(const Parts&... parts) const {
    return model_error(index_.string(), ": ", parts...);
  }

  void open_shards(std::string_view header) {
    uint64_t count = 1, big_endian = 0;
    bool read = for_each_field(header, [&](const ProtoField& field) {
      if (field.number == 1) count = field.value;
      if (field.number == 2) big_endian = field.value;
    });
    if (!read || count == 0 || count > 99999) throw fault("its header is damaged");
    if (big_endian) throw fault("was written on a big-endian machine, which is not supported");
    files_.push_back(index_);
    std::filesystem::path prefix = index_;
    prefix.replace_extension();
    for (uint64_t i = 0; i < count; ++i) {
      char suffix[40];
      std::snprintf(suffix, sizeof suffix, ".data-%05u-of-%05u", unsigned(i), unsigned(count));
      std::filesystem::path shard = prefix;
      shard += suffix;
      shards_.emplace_back(shard, ExitCode::model);
      files_.push_back(shard);
    }
  }

  void add(const TableEntry& item, std::vector<StoredTensor>& tensors,
           std::vector<WeightInfo>& skipped) const {
    std::optional<BundleEntry> entry = parse_entry(item.value);
    if (!entry) throw fault("the entry of variable ", in_quotes(item.key, 200), " is damaged");
    if (item.key.find(".ATTRIBUTES/") != std::string::npos) {
      throw fault(
          "is an object checkpoint of TensorFlow 2, only BERT's TensorFlow 1 checkpoints "
          "are read (variable ",
          in_quotes(item.key, 100), ")");
    }
    std::optional<TensorflowName> name = from_checkpoint_name(item.key);
    std::optional<DType> dtype = dtype_of(entry->dtype);
    if (!name) {
      skipped.push_back({"", item.key, entry->shape, dtype.value_or(DType::u8)});
      return;
    }
    if (entry->sliced) throw fault("variable ", in_quotes(item.key, 200), " is stored in slices");
    if (!dtype) {
      throw fault("variable ", in_quotes(item.key, 200), " has the unsupported type ",
                  entry->dtype);
    }
    if (entry->shard >= shards_.size()) {
      throw fault("variable ", in_quotes(item.key, 200), " is in shard ", entry->shard, " of ",
                  shards_.size());
    }
    const MappedFile& shard = shards_[entry->shard];
    std::optional<int64_t> count = element_count(entry->shape);
    uint64_t bytes = 0;
    if (!count || __builtin_mul_overflow(uint64_t(*count), size_of(*dtype), &bytes) ||
        bytes != entry->size) {
      throw fault("variable ", in_quotes(item.key, 200), " of shape ", shape_text(entry->shape),
                  " is said to take ", entry->size, " bytes");
    }
    if (entry->offset > shard.size() || bytes > shard.size() - entry->offset) {
      throw fault("the data of variable ", in_quotes(item.key, 200), " end outside ",
                  shard.path().filename().string(), " (truncated?)");
    }
    StoredTensor tensor;
    tensor.name = name->name;
    tensor.stored_name = item.key;
    tensor.dtype = *dtype;
    tensor.shape = entry->shape;
    tensor.strides = row_major_strides(tensor.shape);
    tensor.crc32c = entry->crc32c;
    if (bytes > 0) tensor.data = shard.bytes().data() + entry->offset;
    if (name->transpose && tensor.shape.size() == 2) {
      std::swap(tensor.shape[0], tensor.shape[1]);
      std::swap(tensor.strides[0], tensor.strides[1]);
    }
    tensors.push_back(std::move(tensor));
  }

  std::filesystem::path index_;
  std::vector<std::filesystem::path> files_;
  std::vector<MappedFile> shards_;
};

}  // namespace

std::unique_ptr<WeightSource> open_checkpoint(const std::filesystem::path& index,
                                              const TensorNames& names) {
  return CheckpointReader(index).open(names);
}

}  // namespace finetune

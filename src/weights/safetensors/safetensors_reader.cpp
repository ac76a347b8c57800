// Reads safetensors files, with every check of the reference implementation. A file is: u64 N, N
// bytes of JSON, then the data. The rules are those of huggingface/safetensors,
// SafeTensors::read_metadata and Metadata::validate.
#include <simdjson.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_set>

#include "core/error.h"
#include "core/text/json_text.h"
#include "weights/stored_weights.h"

namespace finetune {
namespace {

constexpr uint64_t kLongestHeader = 100'000'000;

struct StoredType {
  std::string_view name;
  uint64_t bits;
  std::optional<DType> dtype;  // none: a valid type that BERT weights never have
};

constexpr StoredType kTypes[] = {
    {"F32", 32, DType::f32}, {"F16", 16, DType::f16}, {"BF16", 16, DType::bf16},
    {"F64", 64, DType::f64}, {"I64", 64, DType::i64}, {"I32", 32, DType::i32},
    {"U8", 8, DType::u8},    {"BOOL", 8, DType::u8},  {"I8", 8, std::nullopt},
    {"I16", 16, {}},         {"U16", 16, {}},         {"U32", 32, {}},
    {"U64", 64, {}},         {"C64", 64, {}},         {"F8_E5M2", 8, {}},
    {"F8_E4M3", 8, {}},      {"F8_E8M0", 8, {}},      {"F6_E2M3", 6, {}},
    {"F6_E3M2", 6, {}},      {"F4", 4, {}},
};

struct Entry {
  StoredTensor tensor;
  uint64_t begin = 0;
  uint64_t end = 0;
};

class HeaderParser {
 public:
  HeaderParser(const MappedFile& file, std::string_view header, uint64_t data_bytes)
      : file_(file), header_(header), data_bytes_(data_bytes) {}

  std::vector<Entry> parse() {
    simdjson::padded_string text = padded_copy(header_);
    simdjson::dom::parser parser;
    simdjson::dom::object root;
    auto error = parser.parse(text).get(root);
    if (error) {
      throw fault("the header is not a JSON object: ", json_fault(error));
    }
    std::vector<Entry> entries;
    std::unordered_set<std::string_view> names;
    for (auto field : root) {
      if (!names.insert(field.key).second) throw fault("duplicate key ", in_quotes(field.key));
      if (field.key == "__metadata__") {
        check_metadata(field.value);
      } else {
        entries.push_back(parse_entry(field.key, field.value));
      }
    }
    return entries;
  }

 private:
  template <typename... Parts>
  Error fault(const Parts&... parts) const {
    return model_error(file_.path().string(), ": ", parts...);
  }

  void check_metadata(simdjson::dom::element value) const {
    simdjson::dom::object metadata;
    if (value.get(metadata)) throw fault("__metadata__ is not a JSON object");
    for (auto field : metadata) {
      if (!field.value.is_string()) {
        throw fault("__metadata__ ", in_quotes(field.key), " is not a string");
      }
    }
  }

  Entry parse_entry(std::string_view name, simdjson::dom::element value) const {
    simdjson::dom::object object;
    if (value.get(object)) throw fault("tensor ", in_quotes(name), " is not a JSON object");
    std::optional<std::string_view> dtype;
    std::optional<std::vector<int64_t>> shape, offsets;
    for (auto field : object) {
      if (field.key == "dtype") {
        std::string_view text;
        if (dtype || field.value.get(text)) throw fault("tensor ", in_quotes(name), ": bad dtype");
        dtype = text;
      } else if (field.key == "shape") {
        if (shape) throw fault("tensor ", in_quotes(name), ": duplicate key \"shape\"");
        shape = numbers(name, "shape", field.value);
      } else if (field.key == "data_offsets") {
        if (offsets) throw fault("tensor ", in_quotes(name), ": duplicate key \"data_offsets\"");
        offsets = numbers(name, "data_offsets", field.value);
      }
    }
    if (!dtype || !shape || !offsets || offsets->size() != 2) {
      throw fault("tensor ", in_quotes(name), " needs dtype, shape and two data_offsets");
    }
    return checked_entry(name, *dtype, std::move(*shape), uint64_t((*offsets)[0]),
                         uint64_t((*offsets)[1]));
  }

  std::vector<int64_t> numbers(std::string_view name, std::string_view key,
                               simdjson::dom::element value) const {
    simdjson::dom::array array;
    if (value.get(array)) throw fault("tensor ", in_quotes(name), ": ", key, " is not an array");
    std::vector<int64_t> result;
    for (auto item : array) {
      int64_t number = 0;
      if (item.get(number) || number < 0) {
        throw fault("tensor ", in_quotes(name), ": ", key, " holds ",
                    in_quotes(simdjson::minify(item)), ", not a whole number >= 0");
      }
      result.push_back(number);
    }
    return result;
  }

  Entry checked_entry(std::string_view name, std::string_view dtype, std::vector<int64_t> shape,
                      uint64_t begin, uint64_t end) const {
    const StoredType* type = nullptr;
    for (const StoredType& candidate : kTypes) {
      if (candidate.name == dtype) type = &candidate;
    }
    if (!type) throw fault("tensor ", in_quotes(name), " has the unknown dtype ", in_quotes(dtype));
    if (begin > end) {
      throw fault("tensor ", in_quotes(name), ": data_offsets [", begin, ", ", end,
                  "] are reversed");
    }
    std::optional<int64_t> count = element_count(shape);
    uint64_t bits = 0;
    if (!count || __builtin_mul_overflow(uint64_t(*count), type->bits, &bits)) {
      throw fault("tensor ", in_quotes(name), ": the size of shape ", shape_text(shape),
                  " overflows");
    }
    if (bits % 8 != 0 || end - begin != bits / 8) {
      throw fault("tensor ", in_quotes(name), ": shape ", shape_text(shape), " of ", dtype,
                  " takes ", bits / 8, " bytes, data_offsets [", begin, ", ", end, "] hold ",
                  end - begin);
    }
    if (end > data_bytes_) {
      throw fault("tensor ", in_quotes(name), ": its data end at byte ", end,
                  ", past the end of the file's ", data_bytes_, " bytes of data (truncated?)");
    }
    Entry entry{{}, begin, end};
    entry.tensor.name = entry.tensor.stored_name = std::string(name);
    entry.tensor.strides = row_major_strides(shape);
    entry.tensor.shape = std::move(shape);
    if (!type->dtype) {
      throw fault("tensor ", in_quotes(name), " has dtype ", dtype,
                  ", which is not supported: convert it to F32, F16 or BF16");
    }
    entry.tensor.dtype = *type->dtype;
    return entry;
  }

  const MappedFile& file_;
  std::string_view header_;
  uint64_t data_bytes_;
};

// The tensors must tile the data: no gap, no overlap, nothing after the last.
void check_tiling(const MappedFile& file, const std::vector<Entry>& entries, uint64_t data_bytes) {
  std::vector<const Entry*> sorted;
  for (const Entry& entry : entries) sorted.push_back(&entry);
  std::sort(sorted.begin(), sorted.end(), [](const Entry* a, const Entry* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  uint64_t expected = 0;
  for (const Entry* entry : sorted) {
    if (entry->begin != expected) {
      throw model_error(file.path().string(), ": tensor ", in_quotes(entry->tensor.stored_name),
                        " begins at byte ", entry->begin, " of the data, ", expected,
                        " is expected: ", entry->begin > expected ? "a gap" : "an overlap");
    }
    expected = entry->end;
  }
  if (expected != data_bytes) {
    throw model_error(file.path().string(), ": ", data_bytes - expected,
                      " bytes follow the data of the last tensor");
  }
}

}  // namespace

std::vector<StoredTensor> parse_safetensors(const MappedFile& file) {
  const std::string path = file.path().string();
  if (file.size() < 8) {
    throw model_error(path, ": has ", file.size(), " bytes, too few for a safetensors file");
  }
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, file.bytes().data(), 8);
  if (header_bytes == 0) throw model_error(path, ": the safetensors header is empty");
  if (header_bytes > file.size() - 8) {
    throw model_error(path, ": a header of ", header_bytes,
                      " bytes is longer than the file (truncated, or not safetensors)");
  }
  if (header_bytes > kLongestHeader) {
    throw model_error(path, ": a header of ", header_bytes, " bytes is longer than the ",
                      kLongestHeader, " that safetensors allows");
  }
  std::string_view header = file.text().substr(8, header_bytes);
  if (header[0] != '{') {
    throw model_error(path, ": the safetensors header does not begin with '{'");
  }
  const uint64_t data_bytes = file.size() - 8 - header_bytes;
  std::vector<Entry> entries = HeaderParser(file, header, data_bytes).parse();
  check_tiling(file, entries, data_bytes);
  std::vector<StoredTensor> tensors;
  tensors.reserve(entries.size());
  for (Entry& entry : entries) {
    entry.tensor.data = file.bytes().data() + 8 + header_bytes + entry.begin;
    tensors.push_back(std::move(entry.tensor));
  }
  return tensors;
}

std::unique_ptr<WeightSource> open_safetensors(const std::filesystem::path& path,
                                               const TensorNames& names) {
  std::vector<MappedFile> maps;
  maps.emplace_back(path, ExitCode::model);
  std::vector<StoredTensor> tensors = parse_safetensors(maps[0]);
  return std::make_unique<StoredWeights>(path, "safetensors", std::vector{path}, std::move(maps),
                                         std::move(tensors), names);
}

}  // namespace finetune

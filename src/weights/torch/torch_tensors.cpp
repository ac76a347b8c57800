// Turns unpickled tensor objects into stored tensors with checked extents.
#include "weights/torch/torch_tensors.h"

#include "core/error.h"

namespace finetune {
namespace {

using Kind = PickleValue::Kind;

std::optional<std::vector<int64_t>> dimensions(const PickleValue& value) {
  if (value.kind != Kind::tuple || value.items.size() > 8) return std::nullopt;
  std::vector<int64_t> result;
  for (const PickleValue* item : value.items) {
    if (item->kind != Kind::integer || item->integer < 0) return std::nullopt;
    result.push_back(item->integer);
  }
  return result;
}

// Elements from the first to behind the last; nothing if that overflows.
std::optional<int64_t> extent(const std::vector<int64_t>& shape,
                              const std::vector<int64_t>& strides) {
  int64_t last = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0) return 0;
    int64_t reach = 0;
    if (__builtin_mul_overflow(shape[d] - 1, strides[d], &reach) ||
        __builtin_add_overflow(last, reach, &last)) {
      return std::nullopt;
    }
  }
  if (__builtin_add_overflow(last, int64_t{1}, &last)) return std::nullopt;
  return last;
}

// Where the part of a storage that a legacy file calls a view lies: (key, offset, elements).
struct Window {
  int64_t begin = 0;
  int64_t size = 0;
};

Window window_of(const std::string& file, std::string_view name, const PickleValue& storage) {
  const int64_t elements = storage.items[4]->integer;
  if (storage.items.size() < 6 || storage.items[5]->kind == Kind::none) return {0, elements};
  const PickleValue& view = *storage.items[5];
  if (view.kind == Kind::tuple && view.items.size() == 3 && view.items[1]->kind == Kind::integer &&
      view.items[2]->kind == Kind::integer) {
    int64_t begin = view.items[1]->integer, size = view.items[2]->integer;
    if (begin >= 0 && size >= 0 && size <= elements && begin <= elements - size) {
      return {begin, size};
    }
  }
  throw model_error(file, ": tensor ", in_quotes(name, 200), " is a damaged view of its storage");
}

StoredTensor make_tensor(const std::string& file, std::string_view name, const PickleValue& value,
                         const StorageBytes& storage_bytes) {
  const PickleValue& storage = *value.items[0];
  auto shape = dimensions(*value.items[2]);
  auto strides = dimensions(*value.items[3]);
  bool valid = value.items[1]->kind == Kind::integer && value.items[1]->integer >= 0 && shape &&
               strides && shape->size() == strides->size();
  if (!valid) {
    throw model_error(file, ": tensor ", in_quotes(name, 200), " has a damaged size or stride");
  }
  std::string_view bytes = storage_bytes(storage);
  const Window window = window_of(file, name, storage);
  const int64_t size = int64_t(size_of(storage.dtype));
  const int64_t offset = value.items[1]->integer;
  const int64_t held = std::min(window.size, int64_t(bytes.size()) / size - window.begin);
  std::optional<int64_t> count = element_count(*shape), reach = extent(*shape, *strides);
  // The last condition refuses tensors that repeat elements (a stride of 0): no saved weight
  // does, and a file of some bytes could ask for any amount of memory.
  if (!count || !reach || offset > held || *reach > held - offset || *count > held) {
    throw model_error(file, ": tensor ", in_quotes(name, 200), " of shape ", shape_text(*shape),
                      " does not fit into its storage of ", std::max<int64_t>(held, 0),
                      " elements");
  }
  StoredTensor tensor;
  tensor.name = tensor.stored_name = std::string(name);
  tensor.dtype = storage.dtype;
  tensor.shape = std::move(*shape);
  tensor.strides = std::move(*strides);
  if (*count > 0) {
    tensor.data = reinterpret_cast<const uint8_t*>(bytes.data()) + (window.begin + offset) * size;
  }
  return tensor;
}

bool has_tensor(const PickleValue& dict) {
  for (size_t i = 1; i < dict.items.size(); i += 2) {
    if (dict.items[i]->kind == Kind::tensor) return true;
  }
  return false;
}

}  // namespace

void for_each_tensor(const std::string& file, const PickleValue& root,
                     const std::function<void(std::string_view, const PickleValue&)>& visit) {
  const PickleValue* dict = &root;
  if (const PickleValue* inner = root.get("state_dict"); inner && !has_tensor(root)) dict = inner;
  if (dict->kind != Kind::dict || !has_tensor(*dict)) {
    throw model_error(file, ": holds no state dict of tensors");
  }
  for (size_t i = 0; i + 1 < dict->items.size(); i += 2) {
    const PickleValue &key = *dict->items[i], &value = *dict->items[i + 1];
    if (key.kind == Kind::text && value.kind == Kind::tensor) visit(key.text, value);
  }
}

std::vector<StoredTensor> torch_tensors(const std::string& file, const PickleValue& root,
                                        const StorageBytes& storage_bytes) {
  std::vector<StoredTensor> tensors;
  for_each_tensor(file, root, [&](std::string_view name, const PickleValue& value) {
    tensors.push_back(make_tensor(file, name, value, storage_bytes));
  });
  return tensors;
}

}  // namespace finetune

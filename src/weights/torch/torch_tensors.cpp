// Turns unpickled tensor objects into stored tensors with checked extents.
#include "weights/torch/torch_tensors.h"

#include <algorithm>

#include "core/error.h"
#include "core/text/text.h"

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

// Elements from the first to behind the last one; nothing on overflow.
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

// The part of a storage that is a view in a legacy file: (key, offset, elements).
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
  // The last condition refuses tensors that repeat elements (stride 0): saved weights never do, and
  // a tiny file could demand any amount of memory.
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

// Names of a module's tensors contain dots; names of other entries (loss, count) do not.
bool has_tensor_of_module(const PickleValue& dict) {
  for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    const PickleValue &key = *dict.items[i], &value = *dict.items[i + 1];
    if (value.kind == Kind::tensor && key.kind == Kind::text &&
        key.text.find('.') != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

constexpr std::string_view kEntries[] = {"state_dict", "model_state_dict", "model", "module"};
constexpr int kMostNested = 8;

struct Entry {
  std::string_view name;
  const PickleValue* dict;
};

// The dictionaries under a usual name of a state dict: those that hold tensors, or all if none do.
std::vector<Entry> inner_dicts(const PickleValue& dict) {
  std::vector<Entry> with_tensors, all;
  for (std::string_view name : kEntries) {
    const PickleValue* inner = dict.get(name);
    if (!inner || inner->kind != Kind::dict || inner->items.empty()) continue;
    const bool is_known = std::any_of(all.begin(), all.end(),
                                      [&](const Entry& known) { return known.dict == inner; });
    if (is_known) continue;
    all.push_back({name, inner});
    if (has_tensor(*inner)) with_tensors.push_back(all.back());
  }
  return with_tensors.empty() && !has_tensor(dict) ? all : with_tensors;
}

// Returns text such as "'epoch', 'net' (a dictionary)".
std::string entries_of(const PickleValue& dict) {
  std::vector<std::string> found;
  for (size_t i = 0; i + 1 < dict.items.size() && found.size() <= 5; i += 2) {
    if (dict.items[i]->kind != Kind::text) continue;
    const bool is_dict = dict.items[i + 1]->kind == Kind::dict;
    found.push_back(in_quotes(dict.items[i]->text, 80) + (is_dict ? " (a dictionary)" : ""));
  }
  return found.empty() ? "none with a name" : join_some(found, 5);
}

constexpr const char* kAdvice =
    "; save the model's own: torch.save(model.state_dict(), \"pytorch_model.bin\")";

}  // namespace

StateDict find_state_dict(const std::string& file, const PickleValue& root) {
  if (root.kind != Kind::dict) {
    throw model_error(file, ": holds no dictionary of tensors", kAdvice);
  }
  StateDict found{&root, ""};
  for (int depth = 0; depth <= kMostNested; ++depth) {
    if (has_tensor_of_module(*found.dict)) return found;
    const std::vector<Entry> inner = inner_dicts(*found.dict);
    if (inner.size() > 1) {
      throw model_error(file, ": holds two state dicts, ", in_quotes(inner[0].name), " and ",
                        in_quotes(inner[1].name), kAdvice);
    }
    if (inner.empty() && has_tensor(*found.dict)) return found;
    if (inner.empty()) {
      throw model_error(file, ": holds no state dict of tensors",
                        found.entry.empty() ? "" : concat(" in ", found.entry),
                        ", its entries are ", entries_of(*found.dict), kAdvice);
    }
    found = {inner[0].dict, concat(found.entry, "['", inner[0].name, "']")};
  }
  throw model_error(file, ": has its state dict in more than ", kMostNested, " dictionaries",
                    kAdvice);
}

std::vector<StoredTensor> torch_tensors(const std::string& file, const PickleValue& dict,
                                        const StorageBytes& storage_bytes) {
  std::vector<StoredTensor> tensors;
  for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    const PickleValue &key = *dict.items[i], &value = *dict.items[i + 1];
    if (key.kind != Kind::text || value.kind != Kind::tensor) continue;
    tensors.push_back(make_tensor(file, key.text, value, storage_bytes));
  }
  return tensors;
}

}  // namespace finetune

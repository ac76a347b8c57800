// Reads pytorch_model.bin in both containers, zip and legacy, without executing anything. Zip
// (torch >= 1.6): <root>/data.pkl and <root>/data/<key>. Legacy: five pickles in a row (magic,
// protocol, system, the object, keys of the storages), then each storage as an 8-byte element count
// and the elements.
#include <cstring>
#include <unordered_map>

#include "core/error.h"
#include "weights/stored_weights.h"
#include "weights/torch/torch_tensors.h"
#include "weights/torch/zip_archive.h"

namespace finetune {
namespace {

constexpr std::string_view kLegacyMagic = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
using Kind = PickleValue::Kind;

// The storages of a legacy file by key: of the model and perhaps of an optimizer.
using Storages = std::unordered_map<std::string_view, const PickleValue*>;

Storages named_storages(const std::string& file, const Unpickler& object) {
  Storages storages;
  for (const PickleValue& value : object.values()) {
    if (value.kind != Kind::storage) continue;
    auto [other, is_new] = storages.emplace(value.items[2]->text, &value);
    if (!is_new && (other->second->dtype != value.dtype ||
                    other->second->items[4]->integer != value.items[4]->integer)) {
      throw model_error(file, ": storage ", in_quotes(value.items[2]->text),
                        " has two types or sizes");
    }
  }
  return storages;
}

std::unordered_map<std::string_view, std::string_view> locate_storages(const std::string& file,
                                                                       std::string_view bytes,
                                                                       size_t position,
                                                                       const PickleValue& keys,
                                                                       const Storages& storages) {
  if (keys.kind != Kind::list) throw model_error(file, ": has no list of storages");
  std::unordered_map<std::string_view, std::string_view> located;
  for (const PickleValue* key : keys.items) {
    auto storage = storages.find(key->text);
    if (key->kind != Kind::text || storage == storages.end() || located.contains(key->text)) {
      throw model_error(file, ": storage ", in_quotes(key->text), " belongs to no tensor");
    }
    const int64_t elements = storage->second->items[4]->integer;
    const uint64_t size = size_of(storage->second->dtype);
    int64_t stored = 0;
    if (bytes.size() - position >= 8) {
      std::memcpy(&stored, bytes.data() + position, 8);
      position += 8;
      if (stored != elements) {
        throw model_error(file, ": storage ", in_quotes(key->text), " holds ", stored,
                          " elements, its tensors expect ", elements);
      }
    } else {
      stored = -1;
    }
    if (stored < 0 || uint64_t(elements) > (bytes.size() - position) / size) {
      throw model_error(file, ": the file ends inside the data of storage ", in_quotes(key->text),
                        " (truncated)");
    }
    located[key->text] = bytes.substr(position, uint64_t(elements) * size);
    position += uint64_t(elements) * size;
  }
  return located;
}

}  // namespace

std::unique_ptr<WeightSource> open_torch_zip(const std::filesystem::path& path,
                                             const TensorNames& names) {
  const std::string name = path.string();
  std::vector<MappedFile> maps;
  maps.emplace_back(path, ExitCode::model);
  std::unordered_map<std::string_view, std::string_view> entries;
  std::string_view pickle_name;
  for (const ZipEntry& entry : read_zip_directory(maps[0])) {
    entries[entry.name] = entry.data;
    if (entry.name.ends_with("/data.pkl")) pickle_name = entry.name;
  }
  if (pickle_name.empty()) {
    throw model_error(name, ": is a zip archive without data.pkl: not a PyTorch file");
  }
  const std::string root(pickle_name.substr(0, pickle_name.size() - 8));  // "archive/"
  auto order = entries.find(root + "byteorder");
  if (order != entries.end() && order->second != "little") {
    throw model_error(name, ": was written on a big-endian machine, which is not supported");
  }
  Unpickler unpickler(concat(name, ": data.pkl"), entries[pickle_name]);
  StateDict state = find_state_dict(name, unpickler.run());
  auto tensors = torch_tensors(name, *state.dict, [&](const PickleValue& storage) {
    auto entry = entries.find(concat(root, "data/", storage.items[2]->text));
    if (entry == entries.end()) {
      throw model_error(name, ": storage ", in_quotes(storage.items[2]->text), " is missing");
    }
    return entry->second;
  });
  return std::make_unique<StoredWeights>(path, "pytorch (zip)", std::vector{path}, std::move(maps),
                                         std::move(tensors), names, std::move(state.entry));
}

std::unique_ptr<WeightSource> open_torch_legacy(const std::filesystem::path& path,
                                                const TensorNames& names) {
  const std::string name = path.string();
  std::vector<MappedFile> maps;
  maps.emplace_back(path, ExitCode::model);
  std::string_view bytes = maps[0].text();

  constexpr size_t kFew = 1000;  // enough for the magic number, the protocol and a small dict
  Unpickler magic(name, bytes, 0, kFew);
  const PickleValue& magic_value = magic.run();
  if (magic_value.kind != Kind::big_integer || magic_value.text != kLegacyMagic) {
    throw model_error(name, ": is a pickle, but not one that torch.save wrote");
  }
  Unpickler protocol(name, bytes, magic.position(), kFew);
  const PickleValue& version = protocol.run();
  if (version.kind != Kind::integer || version.integer != 1001) {
    throw model_error(name, ": has an unknown version of PyTorch's legacy format");
  }
  Unpickler system(name, bytes, protocol.position(), kFew);
  const PickleValue* little = system.run().get("little_endian");
  if (!little || little->kind != Kind::boolean || little->integer != 1) {
    throw model_error(name, ": was written on a big-endian machine, which is not supported");
  }
  Unpickler object(name, bytes, system.position());
  const PickleValue& root = object.run();
  Unpickler keys(name, bytes, object.position());
  const PickleValue& key_list = keys.run();

  StateDict state = find_state_dict(name, root);
  auto located =
      locate_storages(name, bytes, keys.position(), key_list, named_storages(name, object));
  auto tensors = torch_tensors(name, *state.dict, [&](const PickleValue& storage) {
    auto found = located.find(storage.items[2]->text);
    if (found == located.end()) {
      throw model_error(name, ": storage ", in_quotes(storage.items[2]->text), " is missing");
    }
    return found->second;
  });
  return std::make_unique<StoredWeights>(path, "pytorch (legacy)", std::vector{path},
                                         std::move(maps), std::move(tensors), names,
                                         std::move(state.entry));
}

}  // namespace finetune

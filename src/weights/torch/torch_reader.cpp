// Reads pytorch_model.bin in both containers, zip and legacy, without executing anything. Zip
// (torch >= 1.6): <root>/data.pkl and <root>/data/<key>. Legacy: five pickles in a row (magic,
// protocol, system, the object, keys of the storages), then each storage as an 8-byte element count
// and the elements.
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/error.h"
#include "core/files/files.h"
#include "weights/stored_weights.h"
#include "weights/torch/torch_tensors.h"

namespace finetune {
namespace {

// The directory of a zip archive whose entries are stored uncompressed (PKWARE APPNOTE 6.3.10).
struct ZipEntry {
  std::string_view name;  // in the mapped file
  std::string_view data;  // in the mapped file
};

// Reads the central directory, zip64 included. Error(model) if the archive is truncated, an entry
// is compressed or encrypted or outside the file, or two have the same name.
std::vector<ZipEntry> read_zip_directory(const MappedFile& file);

class ZipReader {
 public:
  explicit ZipReader(const MappedFile& file) : file_(file), bytes_(file.text()) {}

  std::vector<ZipEntry> read() {
    find_directory();
    std::vector<ZipEntry> entries;
    std::unordered_set<std::string_view> names;
    uint64_t at = directory_;
    for (uint64_t i = 0; i < count_; ++i) {
      entries.push_back(read_entry(at));
      if (!names.insert(entries.back().name).second) {
        throw fault("two entries named ", in_quotes(entries.back().name));
      }
    }
    return entries;
  }

 private:
  static constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50,
                            kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;

  template <typename... Parts>
  Error fault(const Parts&... parts) const {
    return model_error(file_.path().string(), ": zip archive: ", parts...);
  }

  std::string_view range(uint64_t offset, uint64_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) {
      throw fault("a part of it lies outside the file (truncated?)");
    }
    return bytes_.substr(offset, size);
  }

  template <typename T>
  T number(uint64_t offset) const {
    T value;
    std::memcpy(&value, range(offset, sizeof value).data(), sizeof value);
    return value;
  }

  void find_directory() {
    constexpr uint64_t kRecord = 22, kLongestComment = 65535;
    const uint64_t size = bytes_.size();
    uint64_t end = size;
    for (uint64_t back = kRecord; back <= std::min(size, kRecord + kLongestComment); ++back) {
      uint64_t at = size - back;
      if (number<uint32_t>(at) == kEnd && number<uint16_t>(at + 20) == back - kRecord) {
        end = at;
        break;
      }
    }
    if (end == size) throw fault("it has no end-of-directory record: the file is truncated");
    count_ = number<uint16_t>(end + 10);
    directory_ = number<uint32_t>(end + 16);
    if (end >= 20 && number<uint32_t>(end - 20) == kLocator64) {
      uint64_t end64 = number<uint64_t>(end - 20 + 8);
      if (number<uint32_t>(end64) != kEnd64) throw fault("its zip64 record is damaged");
      count_ = number<uint64_t>(end64 + 32);
      directory_ = number<uint64_t>(end64 + 48);
    }
  }

  // Reads the entry whose central record is at `at` and moves `at` to the next.
  ZipEntry read_entry(uint64_t& at) const {
    if (number<uint32_t>(at) != kCentral) throw fault("its directory is damaged");
    const uint16_t flags = number<uint16_t>(at + 8), method = number<uint16_t>(at + 10);
    uint64_t compressed = number<uint32_t>(at + 20), size = number<uint32_t>(at + 24);
    uint64_t local = number<uint32_t>(at + 42);
    const uint16_t name_length = number<uint16_t>(at + 28),
                   extra_length = number<uint16_t>(at + 30),
                   comment_length = number<uint16_t>(at + 32);
    ZipEntry entry;
    entry.name = range(at + 46, name_length);
    read_zip64_extra(range(at + 46 + name_length, extra_length), size, compressed, local);
    at += 46 + uint64_t{name_length} + extra_length + comment_length;
    if (flags & 1) throw fault("entry ", in_quotes(entry.name), " is encrypted");
    if (method != 0 || compressed != size) {
      throw fault("entry ", in_quotes(entry.name), " is compressed, PyTorch stores entries plain");
    }
    if (number<uint32_t>(local) != kLocal) {
      throw fault("entry ", in_quotes(entry.name), " is not where the directory says");
    }
    uint64_t skip = 30 + uint64_t{number<uint16_t>(local + 26)} + number<uint16_t>(local + 28);
    entry.data = range(local + skip, size);
    return entry;
  }

  // For each value of 0xFFFFFFFF, extra field 1 has a 64-bit number, in this order.
  void read_zip64_extra(std::string_view extra, uint64_t& size, uint64_t& compressed,
                        uint64_t& local) const {
    while (extra.size() >= 4) {
      uint16_t id, length;
      std::memcpy(&id, extra.data(), 2);
      std::memcpy(&length, extra.data() + 2, 2);
      if (length > extra.size() - 4) return;  // padding
      std::string_view field = extra.substr(4, length);
      extra.remove_prefix(4 + size_t{length});
      if (id != 1) continue;
      for (uint64_t* value : {&size, &compressed, &local}) {
        if (*value != 0xFFFFFFFFu || field.size() < 8) continue;
        std::memcpy(value, field.data(), 8);
        field.remove_prefix(8);
      }
    }
  }

  const MappedFile& file_;
  std::string_view bytes_;
  uint64_t count_ = 0;
  uint64_t directory_ = 0;
};

std::vector<ZipEntry> read_zip_directory(const MappedFile& file) {
  return ZipReader(file).read();
}

constexpr std::string_view kLegacyMagic = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
using Kind = PickleValue::Kind;

// The storages of a legacy file by key: the model's and perhaps an optimizer's.
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

using Parse = FileTensors (*)(const MappedFile& file);

std::unique_ptr<WeightSource> open_torch(const std::filesystem::path& path, std::string format,
                                         const TensorNames& names, Parse parse) {
  std::vector<MappedFile> maps;
  maps.emplace_back(path, ExitCode::model);
  FileTensors found = parse(maps[0]);
  return std::make_unique<StoredWeights>(path, std::move(format), std::vector{path},
                                         std::move(maps), std::move(found.tensors), names,
                                         std::move(found.entry));
}

}  // namespace

FileTensors parse_torch_zip(const MappedFile& file) {
  const std::string name = file.path().string();
  std::unordered_map<std::string_view, std::string_view> entries;
  std::string_view pickle_name;
  for (const ZipEntry& entry : read_zip_directory(file)) {
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
  return {std::move(tensors), std::move(state.entry)};
}

FileTensors parse_torch_legacy(const MappedFile& file) {
  const std::string name = file.path().string();
  std::string_view bytes = file.text();

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
  return {std::move(tensors), std::move(state.entry)};
}

std::unique_ptr<WeightSource> open_torch_zip(const std::filesystem::path& path,
                                             const TensorNames& names) {
  return open_torch(path, "pytorch (zip)", names, parse_torch_zip);
}

std::unique_ptr<WeightSource> open_torch_legacy(const std::filesystem::path& path,
                                                const TensorNames& names) {
  return open_torch(path, "pytorch (legacy)", names, parse_torch_legacy);
}

}  // namespace finetune

// Makes PyTorch files, pickles and their two containers, without torch.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace finetune::test {

template <typename T>
std::string little(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

inline std::string text(std::string_view s) {
  return "X" + little(uint32_t(s.size())) + std::string(s);
}
inline std::string integer(int32_t value) {
  return "J" + little(value);
}
inline std::string global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}
inline std::string tuple_of(const std::string& items) {
  return "(" + items + "t";
}
inline std::string storage(const std::string& type, const std::string& key, int32_t elements) {
  return tuple_of(text("storage") + global("torch", type) + text(key) + text("cpu") +
                  integer(elements)) +
         "Q";
}
inline std::string tensor(const std::string& storage, int32_t offset, const std::string& size,
                          const std::string& stride) {
  return global("torch._utils", "_rebuild_tensor_v2") +
         tuple_of(storage + integer(offset) + tuple_of(size) + tuple_of(stride) + "\x89" +
                  global("collections", "OrderedDict") + ")R") +
         "R";
}
inline std::string state_dict(const std::string& name, const std::string& value) {
  return "\x80\x02}" + text(name) + value + "s.";
}
// Name and value, name and value, ...
inline std::string state_dict(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string items;
  for (const auto& [name, value] : entries) items += text(name) + value;
  return "\x80\x02}(" + items + "u.";
}

struct ZipOptions {
  bool zip64 = false;
  uint16_t method = 0;
  uint16_t flags = 0;
};

inline std::string zip_of(const std::vector<std::pair<std::string, std::string>>& entries,
                          ZipOptions options = {}) {
  std::string bytes, directory;
  for (const auto& [name, data] : entries) {
    uint32_t size = options.zip64 ? 0xFFFFFFFFu : uint32_t(data.size());
    uint32_t at = options.zip64 ? 0xFFFFFFFFu : uint32_t(bytes.size());
    std::string extra;
    if (options.zip64) {
      extra = little(uint16_t{1}) + little(uint16_t{24}) + little(uint64_t(data.size())) +
              little(uint64_t(data.size())) + little(uint64_t(bytes.size()));
    }
    std::string common = little(options.flags) + little(options.method) + little(uint32_t{0}) +
                         little(uint32_t{0}) + little(size) + little(size) +
                         little(uint16_t(name.size()));
    directory += "PK\x01\x02" + little(uint16_t{0}) + little(uint16_t{0}) + common +
                 little(uint16_t(extra.size())) + little(uint16_t{0}) + little(uint16_t{0}) +
                 little(uint16_t{0}) + little(uint32_t{0}) + little(at) + name + extra;
    // The local header has padding of its own, as PyTorch aligns storages.
    bytes += "PK\x03\x04" + little(uint16_t{0}) + common + little(uint16_t{5}) + name +
             std::string("FB\1\0Z", 5) + data;
  }
  uint64_t start = bytes.size();
  bytes += directory;
  if (options.zip64) {
    uint64_t end64 = bytes.size();
    bytes += "PK\x06\x06" + little(uint64_t{44}) + std::string(12, '\0') +
             little(uint64_t(entries.size())) + little(uint64_t(entries.size())) +
             little(uint64_t(directory.size())) + little(start);
    bytes += "PK\x06\x07" + little(uint32_t{0}) + little(end64) + little(uint32_t{1});
    bytes += "PK\x05\x06" + std::string(4, '\0') + std::string(12, '\xff') + little(uint16_t{0});
    return bytes;
  }
  return bytes + "PK\x05\x06" + std::string(4, '\0') + little(uint16_t(entries.size())) +
         little(uint16_t(entries.size())) + little(uint32_t(directory.size())) +
         little(uint32_t(start)) + little(uint16_t{0});
}

inline const std::string kFour = little(1.0f) + little(2.0f) + little(3.0f) + little(4.0f);

// A file of the legacy container; storage i has key "i" and elements of `sizes[i]` bytes.
inline std::string legacy_of(const std::string& pickle, const std::vector<std::string>& storages,
                             const std::vector<size_t>& sizes) {
  std::string keys, data;
  for (size_t i = 0; i < storages.size(); ++i) {
    keys += text(std::to_string(i));
    data += little(uint64_t(storages[i].size() / sizes[i])) + storages[i];
  }
  return "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02" + integer(1001) +
         ".\x80\x02}" + text("little_endian") + "\x88s." + pickle + "\x80\x02](" + keys + "e." +
         data;
}

}  // namespace finetune::test

// Reads a zip file's central directory, zip64 included.
#include "weights/torch/zip_archive.h"

#include <cstring>
#include <unordered_set>

#include "core/error.h"

namespace finetune {
namespace {

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

  // Values of 0xFFFFFFFF are in extra field 1 as 64-bit numbers, in this order.
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

}  // namespace

std::vector<ZipEntry> read_zip_directory(const MappedFile& file) {
  return ZipReader(file).read();
}

}  // namespace finetune

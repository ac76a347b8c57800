// A file, read-only in memory as it is on the disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "core/error.h"
#include "core/files/descriptor.h"
#include "core/files/mapping_faults.h"

namespace finetune {

// All that a regular file holds when it is opened. Throws Error(code): missing, no regular file,
// unreadable. A file that is cut later gives zeros in place of what it held, so whoever has read
// asks check_intact() before the result is used.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path, ExitCode code = ExitCode::data);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::string_view text() const { return {static_cast<const char*>(data_), size_}; }
  std::span<const uint8_t> bytes() const { return {static_cast<const uint8_t*>(data_), size_}; }
  size_t size() const { return size_; }
  const std::filesystem::path& path() const { return path_; }
  bool holds(const void* address) const;

  // Error(code) if what has been read so far may not be what the file held when it was opened: it
  // is shorter now, or a part of it could not be read. It may have become longer.
  void check_intact() const;
  // read(), which reads the file, and check_intact(), also before what read() throws goes on.
  template <typename Read>
  void read_intact(Read&& read) const {
    try {
      read();
    } catch (...) {
      check_intact();
      throw;
    }
    check_intact();
  }

 private:
  std::filesystem::path path_;
  ExitCode code_;
  Descriptor file_;
  void* data_ = nullptr;
  size_t size_ = 0;
  WatchedMapping* watched_ = nullptr;
};

}  // namespace finetune

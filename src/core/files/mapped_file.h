// A read-only memory mapping of a file, and what happens when reading it fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "core/error.h"
#include "core/files/descriptor.h"

namespace finetune {

// Handles faults in mapped files. If a mapped file is truncated or its disk fails, reading its
// bytes raises SIGBUS. In a watched mapping the reading thread then gets zeros and continues; check
// has_faulted() after reading. Elsewhere the signal has its previous effect.
struct WatchedMapping;

// Watches whole pages from `begin` on, until unwatch_mapping(), which must come before munmap().
WatchedMapping* watch_mapping(const void* begin, size_t size);
void unwatch_mapping(WatchedMapping* mapping);
bool has_faulted(const WatchedMapping& mapping);

// Maps a regular file. Error(code) if it is missing, not regular or unreadable. If the file is
// truncated meanwhile, reads return zeros, so call check_intact() after reading and before using
// the result.
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
  // Gives back the memory that these bytes take in this process; they can be read again.
  void release(const void* begin, size_t bytes) const;

  // Error(code) if the bytes read so far may be wrong: the file is shorter than when it was opened,
  // or a part could not be read. A longer file is fine.
  void check_intact() const;
  // Calls read(), then check_intact(); the latter also before an exception of read() is passed on.
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

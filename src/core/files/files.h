// Files: reading (file_kind.h, mapped_file.h, text_file.h), and atomic writing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/files/file_kind.h"
#include "core/files/mapped_file.h"
#include "core/files/text_file.h"

namespace finetune {

namespace fs = std::filesystem;

// Returns false with errno set if not all bytes can be written.
bool write_all(int descriptor, std::string_view bytes);

// Writes a temporary file beside `path`; commit() flushes it to the disk and renames it to `path`.
// Without commit() nothing remains. Errors are Error(model) with the file's name.
class AtomicFile {
 public:
  enum class Existing { replace, refuse };

  // The new file takes over the permissions of a file that it replaces. `refuse`: commit() does not
  // replace a file that has appeared at `path`, but throws Error(usage) that names --overwrite.
  explicit AtomicFile(fs::path path, Existing existing = Existing::replace);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }
  // Flushes the whole file to the disk; only renaming is left. Complete all files that belong
  // together before committing the first one.
  void complete();
  void commit();
  // For libraries that open a file by name (HDF5): write to this path, then commit().
  const fs::path& temporary() const { return temporary_; }

 private:
  enum class State { open, complete, committed };

  [[noreturn]] void fail(int error) const;
  void flush_buffer();
  bool take_over_mode() const;  // copies the replaced file's permissions; false with errno
  bool rename_to_nothing() const;

  fs::path path_;
  Existing existing_;
  fs::path temporary_;
  int descriptor_ = -1;
  State state_ = State::open;
  std::string buffer_;
};

// Removes temporary files that dead writers of `path` left beside it. Keeps files of living writers
// and of other users, and files that cannot be locked.
void remove_abandoned_files(const fs::path& path);

// Opens a file for appending, such as a log, and creates it if needed; `fresh` empties it.
// Error(model) if it is not a regular file, or a symbolic link, which might point anywhere.
int open_for_appending(const fs::path& path, bool fresh);

// Writes a file through AtomicFile.
void write_file(const fs::path& path, std::string_view text,
                AtomicFile::Existing existing = AtomicFile::Existing::replace);
// The directory of `path`; "." for a bare name.
fs::path parent_of(const fs::path& path);
void create_directories(const fs::path& path);   // Error(model) on failure
void sync_directory(const fs::path& directory);  // best effort: some file systems refuse it
// Error(model) if the file system of `directory` has fewer than `bytes` free.
void require_free_space(const fs::path& directory, uint64_t bytes, std::string_view what);

// The folder of this program; "" if unknown.
fs::path program_folder();

}  // namespace finetune

// Files: read (file_kind.h, mapped_file.h, text_file.h), and written whole or not at all.
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

// False, errno saying why, if not all of it can be written.
bool write_all(int descriptor, std::string_view bytes);

// Writes beside `path` under a temporary name; commit() flushes to the disk and renames it over
// `path`. Without commit nothing is left. Errors are Error(ExitCode::model) naming the file.
class AtomicFile {
 public:
  enum class Existing { replace, refuse };

  // Takes over the rights of a file that it replaces. `refuse`: what comes to be at `path`
  // meanwhile stays; commit() throws Error(usage), which names --overwrite.
  explicit AtomicFile(fs::path path, Existing existing = Existing::replace);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }
  // All of it is on the disk; only the renaming is left. Of several files that belong together each
  // is completed before the first one is committed.
  void complete();
  void commit();
  // For libraries that open the file by name (HDF5): write to this path, then commit().
  const fs::path& temporary() const { return temporary_; }

 private:
  enum class State { open, complete, committed };

  [[noreturn]] void fail(int error) const;
  void flush_buffer();
  bool take_over_mode() const;  // of the file that is replaced; false: errno says why not
  bool rename_to_nothing() const;

  fs::path path_;
  Existing existing_;
  fs::path temporary_;
  int descriptor_ = -1;
  State state_ = State::open;
  std::string buffer_;
};

// Removes what killed writers of `path` have left beside it. Temporary files that a living writer
// holds, another user's, and such that no lock can tell of are left alone.
void remove_abandoned_files(const fs::path& path);

// Opens a file that we keep adding to, such as a log, and makes it where there is none; `fresh`: it
// begins empty. Error(model): it is a symbolic link, which might lead anywhere, or not a file.
int open_for_appending(const fs::path& path, bool fresh);

// Through AtomicFile.
void write_file(const fs::path& path, std::string_view text,
                AtomicFile::Existing existing = AtomicFile::Existing::replace);
// The directory that `path` lies in, "." for a name alone.
fs::path parent_of(const fs::path& path);
void create_directories(const fs::path& path);   // Error(model) if it cannot
void sync_directory(const fs::path& directory);  // best effort: some file systems refuse it
// Throws Error(model) if the file system of `directory` has fewer than `bytes` free.
void require_free_space(const fs::path& directory, uint64_t bytes, std::string_view what);

// Where this program lies; empty if nobody can tell.
fs::path program_folder();

}  // namespace finetune

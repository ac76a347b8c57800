// Names and permissions of unfinished files, and files without a name. The names are beside the
// target, not guessable, and recognisable if a killed writer leaves them.
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "core/files/descriptor.h"

namespace finetune {

inline constexpr std::string_view kTemporaryMark = ".tmp.";

// A new name in the directory of `target`: "model.tmp.0123456789abcdef" with random digits.
std::filesystem::path temporary_name(const std::filesystem::path& target,
                                     std::string_view mark = kTemporaryMark);
// Whether temporary_name(target, mark) may have returned `name`.
bool is_temporary_of(std::string_view name, const std::filesystem::path& target,
                     std::string_view mark = kTemporaryMark);

// "metrics.json.tmp.0123456789abcdef" becomes "metrics.json"; so does "metrics.json.tmp.123", which
// earlier versions wrote with their process id. Other names are unchanged. Use it only in
// directories that finetune wrote.
std::string_view without_temporary_suffix(std::string_view name);

// Gives the temporary file or directory behind `descriptor` the group and `mode` of what it will
// replace, so that private or group-writable files stay so. Returns false with errno if that would
// grant more rights than before; file systems without permissions are ignored.
bool take_over_rights(int descriptor, gid_t group, mode_t mode);

// $TMPDIR, or /tmp if that is empty or not set.
std::string temporary_directory();

// A file in temporary_directory() that vanishes with its last descriptor, however the process ends.
class NamelessFile {
 public:
  // `what` names the contents in errors. Error(model) if the file cannot be created, and later if
  // it cannot be written.
  explicit NamelessFile(std::string what);
  NamelessFile(std::string what, int descriptor);  // takes over another process's file

  void write(std::string_view bytes);
  int descriptor() const { return file_.number(); }

 private:
  [[noreturn]] void fail() const;  // reports errno

  std::string what_;
  Descriptor file_;
};

}  // namespace finetune

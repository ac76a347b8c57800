// Names and permissions of unfinished files. The names are beside the target, not guessable, and
// recognisable if a killed writer leaves them.
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace finetune {

inline constexpr std::string_view kTemporaryMark = ".tmp.";

// A new name in the directory of `target`: "model.tmp.0123456789abcdef" with random digits.
std::filesystem::path temporary_name(const std::filesystem::path& target,
                                     std::string_view mark = kTemporaryMark);
// Whether temporary_name(target, mark) may have returned `name`.
bool is_temporary_of(std::string_view name, const std::filesystem::path& target,
                     std::string_view mark = kTemporaryMark);

// "metrics.json.tmp.0123456789abcdef" becomes "metrics.json"; so does "metrics.json.tmp.123", which
// earlier versions wrote with their process id. Other names are unchanged. For finetune's own
// directories.
std::string_view without_temporary_suffix(std::string_view name);

// Gives the temporary file or directory behind `descriptor` the group and `mode` of what it will
// replace, so that private or group-writable files stay so. Returns false with errno if that would
// grant more rights than before; file systems without permissions are ignored.
bool take_over_rights(int descriptor, gid_t group, mode_t mode);

}  // namespace finetune

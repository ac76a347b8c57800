// Names of what is not yet whole: beside their target, not to be guessed by others, and known as
// ours where a killed writer has left them. And the rights that it has from what it replaces.
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace finetune {

inline constexpr std::string_view kTemporaryMark = ".tmp.";

// A new name in the directory of `target`: "model.tmp.0123456789abcdef", its digits random.
std::filesystem::path temporary_name(const std::filesystem::path& target,
                                     std::string_view mark = kTemporaryMark);
// Is `name` one that temporary_name(target, mark) may give?
bool is_temporary_of(std::string_view name, const std::filesystem::path& target,
                     std::string_view mark = kTemporaryMark);

// "metrics.json.tmp.0123456789abcdef" -> "metrics.json", and "metrics.json.tmp.123" as well, which
// earlier versions made of their process id; other names as they are. For directories of our own.
std::string_view without_temporary_suffix(std::string_view name);

// Gives the temporary file or directory behind `descriptor` the group and `mode` of what it will
// replace: what others may not read, or a group may write, stays so. False, with errno, if it would
// come to give more rights than before; file systems without rights do as they like.
bool take_over_rights(int descriptor, gid_t group, mode_t mode);

}  // namespace finetune

// Names of what is not yet whole: beside their target, not to be guessed by others, and known as
// ours where a killed writer has left them.
#pragma once

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

}  // namespace finetune

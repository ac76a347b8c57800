// The rules for --output directories: what may be written, and what --overwrite may replace.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "core/files/directory_replacement.h"

namespace finetune {

// Error(model) if `directory` cannot be created or written to.
void check_writable(const std::filesystem::path& directory);

// Call this before slow work, and again before replacing an old directory. An absent or empty
// directory may be written. Any other is replaced only with `overwrite`, and only if all its files
// are of this kind and written by finetune; never a root, home, repository, working directory,
// link, or other files. Error(usage), or Error(model) as above.
void check_output_directory(const std::filesystem::path& output, bool overwrite,
                            const DirectoryKind& kind);
void check_replaceable(const std::filesystem::path& output, const DirectoryKind& kind);

// Error(usage) if one of these files or directories is inside `directory`. Call before --overwrite
// replaces it.
void check_inputs_survive(const std::filesystem::path& directory,
                          const std::vector<std::filesystem::path>& inputs);

}  // namespace finetune

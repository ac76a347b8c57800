// --output where it is a directory: what may be written, what --overwrite replaces, and what it
// never does.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "core/files/directory_replacement.h"

namespace finetune {

// Error(model): `directory` cannot be made or written to.
void check_writable(const std::filesystem::path& directory);

// To be called before anything slow, and once more before an old directory is replaced. What is
// absent or empty may be written. What is not is replaced with `overwrite` alone, and only if it
// is a directory whose files are all of this kind and ours: never a root, a home, a repository, a
// working directory, a link, a file of others. Error(usage), or Error(model) as above.
void check_output_directory(const std::filesystem::path& output, bool overwrite,
                            const DirectoryKind& kind);
void check_replaceable(const std::filesystem::path& output, const DirectoryKind& kind);

// Error(usage) if one of these files or directories lies in `directory`: to be called before
// --overwrite.
void check_inputs_survive(const std::filesystem::path& directory,
                          const std::vector<std::filesystem::path>& inputs);

}  // namespace finetune

// Advice for data paths that cannot be read: URLs, and directories that hold a table.
#pragma once

#include <filesystem>

#include "core/error.h"

namespace finetune {

// If `path` is a URL, or a directory written by the Python package datasets, throws Error(code)
// that says how to get a readable file.
void refuse_with_advice(const std::filesystem::path& path, ExitCode code);

}  // namespace finetune

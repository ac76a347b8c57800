// Advice for paths of data that cannot be read: URLs, and directories that hold a table.
#pragma once

#include <filesystem>

#include "core/error.h"

namespace finetune {

// Error(code) with the way to a file that can be read, if `path` is a URL or a directory that the
// Python package datasets has written. Otherwise returns.
void refuse_with_advice(const std::filesystem::path& path, ExitCode code);

}  // namespace finetune

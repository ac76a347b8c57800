// Refuses paths with advice: data that cannot be read, and outputs named for another format.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>

#include "core/error.h"

namespace finetune {

// If `path` is a URL, or a directory written by the Python package datasets, throws Error(code)
// that says how to get a readable file.
void refuse_with_advice(const std::filesystem::path& path, ExitCode code);

// Error(usage) if `path` has the suffix of a known format that is not in `written` (".csv"). `what`
// ends the message: "labels are written as CSV; name it .csv".
void require_output_suffix(std::string_view option, const std::string& path,
                           std::initializer_list<std::string_view> written, std::string_view what);

// The same for an output directory. An existing directory may have any name.
void require_directory_name(std::string_view option, const std::string& path);

}  // namespace finetune

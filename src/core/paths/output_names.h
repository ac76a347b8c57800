// Refuses output names that promise another format than the one written.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace finetune {

// Error(usage) if `path` has the suffix of a known format that is not in `written` (".csv"). `what`
// ends the message: "labels are written as CSV; name it .csv".
void require_output_suffix(std::string_view option, const std::string& path,
                           std::initializer_list<std::string_view> written, std::string_view what);

// The same for an output directory. An existing directory may have any name.
void require_directory_name(std::string_view option, const std::string& path);

}  // namespace finetune

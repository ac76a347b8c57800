// Which form a file of questions has.
#pragma once

#include <filesystem>
#include <string_view>

namespace finetune {

// True for text that is not JSON, unless the file's suffix says so: its questions are rows of a
// table.
bool is_table(const std::filesystem::path& name, std::string_view text);

}  // namespace finetune

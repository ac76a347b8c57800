// Tells the forms of question files apart.
#pragma once

#include <filesystem>
#include <string_view>

namespace finetune {

// Returns true if the questions are rows of a table: the text is not JSON, and the file's suffix
// does not claim that it is.
bool is_table(const std::filesystem::path& name, std::string_view text);

}  // namespace finetune

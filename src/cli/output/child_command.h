// Another command of this program, in a process of its own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace finetune {

// Runs `finetune WORDS...` with `input` as its standard input and returns its standard output.
// Error with the command's exit code and its last error line if it fails.
std::string output_of_command(const std::vector<std::string>& words, std::string_view input);

}  // namespace finetune

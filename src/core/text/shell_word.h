// Quotes a word for the lines that the program suggests to type.
#pragma once

#include <string>

namespace finetune {

// The word as it is, or in single quotes where a shell would change it. Control bytes are escaped.
std::string shell_word(const std::string& word);

}  // namespace finetune

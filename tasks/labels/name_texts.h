// Label names as texts that an encoder reads.
#pragma once

#include <string>
#include <vector>

namespace finetune {

// Returns the names with blanks in place of underscores, or nothing if the names have no words: if
// no word of three letters is in some of them and not in others ("0" and "1", "LABEL_0" and
// "LABEL_1"). A byte beyond ASCII counts as a letter.
std::vector<std::string> texts_of_names(const std::vector<std::string>& names);

}  // namespace finetune

// Turns label names into texts for an encoder.
#pragma once

#include <string>
#include <vector>

namespace finetune {

// Returns the names with blanks instead of underscores. Returns nothing if the names have no words,
// that is, if no word of three letters is in only some of them ("0" and "1", "LABEL_0" and
// "LABEL_1"). A byte beyond ASCII counts as a letter.
std::vector<std::string> texts_of_names(const std::vector<std::string>& names);

}  // namespace finetune

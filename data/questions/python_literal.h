// Values as Python prints them; pandas writes such text into cells.
#pragma once

#include <string>
#include <string_view>

namespace finetune {

// Converts a printed Python dict or list to JSON: strings get double quotes, None becomes null,
// True and False are lower-cased, and numpy's array([...], dtype=...) becomes its list. JSON stays
// as it is. Any other text gives text that is not JSON.
std::string json_of_python(std::string_view text);

}  // namespace finetune

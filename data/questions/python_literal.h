// Values as Python prints them, which pandas writes into cells.
#pragma once

#include <string>
#include <string_view>

namespace finetune {

// JSON for what looks like a printed Python dict or list: strings get double quotes, None is null,
// True and False are small, and numpy's array([...], dtype=...) is its list. Text that is JSON
// already stays as it is. What is neither gives text that is not JSON.
std::string json_of_python(std::string_view text);

}  // namespace finetune

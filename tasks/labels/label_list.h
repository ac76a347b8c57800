// A list of labels in one value.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace finetune {

// The names in a JSON array, or in a list, tuple or set as Python and numpy write it:
// ["food", "big"], ['food', 'big'], ['food' 'big']. Numbers are names as they are written; null,
// None and nan are left out. Nothing if the value is not such a list.
std::optional<std::vector<std::string>> label_list(std::string_view value);

}  // namespace finetune

// Reads a list of labels in one value.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace finetune {

// The names in a JSON array, or in a list, tuple or set in the notation of Python or numpy:
// ["food", "big"], ['food', 'big'], ['food' 'big']. A number is a name as it is written. null, None
// and nan are left out. Returns nothing if the value is not such a list.
std::optional<std::vector<std::string>> label_list(std::string_view value);

}  // namespace finetune

// Prepares JSON written by Python for a parser with 64-bit integers.
#pragma once

#include <string>
#include <string_view>

namespace finetune {

// Adds an exponent to each integer of more than 19 digits, so that a parser reads it as a double:
// Hugging Face writes "no limit" as int(1e30). Invalid JSON stays invalid.
std::string with_long_integers_as_doubles(std::string_view json);

}  // namespace finetune

// Text of JSON as Python writes it, for a parser of 64-bit integers.
#pragma once

#include <string>
#include <string_view>

namespace finetune {

// `json` with an exponent at each integer of more than 19 digits, which a parser then reads as a
// double: Hugging Face writes "no limit" as int(1e30). What is not JSON stays not JSON.
std::string with_long_integers_as_doubles(std::string_view json);

}  // namespace finetune

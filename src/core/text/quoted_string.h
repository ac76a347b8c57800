// Strings in quotes, as JSON, Python and TOML write them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace finetune {

// Reads the string whose opening quote, " or ', is at `at`, and moves `at` behind its closing
// quote. Escapes are those of JSON and Python: \n, \\, \xNN, \uNNNN (also in pairs of surrogates),
// \UNNNNNNNN. Returns nothing for an unknown escape, for an escape of U+0000 or of a code that is
// not a character, and if the closing quote is missing; `at` is then inside the string.
std::optional<std::string> read_quoted(std::string_view text, size_t& at);

// "text" in double quotes with escapes, valid in JSON and TOML.
std::string double_quoted(std::string_view text);

}  // namespace finetune

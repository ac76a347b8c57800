// Guesses what an input is from its first bytes: a table, texts, or lines above a header.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace finetune {

// Number of bytes to look at.
inline constexpr size_t kShapeBytes = size_t{64} << 10;

// In all functions `last` means that nothing follows `text`.

// Returns the delimiter if `text` looks like a table by its values alone. It has at least two rows.
// Either all rows have two values, or most rows have the same number of values, three or more.
// Lines before the table's header are allowed.
std::optional<char> table_delimiter(std::string_view text, bool last);

// Returns the delimiter of a header that names all of `columns`. If there are rows below, at
// least one must have as many values as the header. `delimiter` is the only one to try; 0 tries
// all.
std::optional<char> header_delimiter(std::string_view text, bool last, char delimiter,
                                     const std::vector<std::string>& columns);

struct HeaderBelow {
  uint32_t line = 0;  // 1: the first line of `text`
  std::vector<std::string> names;
};

// Finds a header that is not the first row, such as one below a bank's lines about the account. The
// header consists of names; it is wider than the first row, or the first row has mostly empty
// names. Most rows below have as many values as the header. Returns nothing if the first row
// contains one of `columns`.
std::optional<HeaderBelow> header_below(std::string_view text, bool last, char delimiter,
                                        const std::vector<std::string>& columns);

}  // namespace finetune

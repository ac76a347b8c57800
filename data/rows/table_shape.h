// What the first bytes of an input look like: a table, texts, or lines before a table's header.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace finetune {

// How many bytes of an input are looked at.
inline constexpr size_t kShapeBytes = size_t{64} << 10;

// In all functions `last` says that nothing follows `text`.

// Returns the delimiter if `text` looks like a table by its values alone. It has at least two rows.
// Either all rows have two values, or most rows have the same number of values, three or more.
// Lines before the table's header are allowed.
std::optional<char> table_delimiter(std::string_view text, bool last);

// Returns the delimiter of a header that names all of `columns`. If there are rows below, one has
// as many values as the header. `delimiter` is the only one to try; 0 tries all.
std::optional<char> header_delimiter(std::string_view text, bool last, char delimiter,
                                     const std::vector<std::string>& columns);

struct HeaderBelow {
  uint32_t line = 0;  // 1: the first line of `text`
  std::vector<std::string> names;
};

// Finds a header that is not the first row, as behind a bank's lines about the account: names in a
// row that is wider than the first one, or that one has mostly empty names. Most rows below have
// as many values as the header. Nothing if the first row has one of the names in `columns`.
std::optional<HeaderBelow> header_below(std::string_view text, bool last, char delimiter,
                                        const std::vector<std::string>& columns);

}  // namespace finetune

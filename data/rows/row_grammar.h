// Where a row ends and what its values are: one pure function a format. Used by the readers of
// data/rows/records.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/text_arena.h"

namespace finetune {

// Limits of one row, so that no file takes more memory than rows of this size.
inline constexpr size_t kMostRowBytes = size_t{64} << 20;
inline constexpr size_t kMostColumns = 100'000;
inline constexpr std::string_view kTooManyValues =
    "more than 100,000 values in a row; is this the right file and delimiter?";

struct RowScan {
  enum class State { row, incomplete, bad };
  State state = State::row;
  size_t size = 0;            // bytes of the row with its line end
  uint32_t lines = 0;         // line ends among them
  std::string problem{};      // bad: what is wrong, for the user
  uint32_t problem_line = 0;  // bad: how many lines below the beginning of the row
};

// Each reads the row at the beginning of `text` (not empty) into `values`; a blank line gives no
// values. `last`: nothing follows `text`; otherwise a row that might go on is incomplete.
using Values = std::vector<std::string_view>;
// RFC 4180, and a lone CR ends a row too. A quote counts only at the beginning of a field.
RowScan scan_csv(std::string_view text, bool last, char delimiter, Values& values,
                 TextArena& arena);
// Values between tabs as they are. Quotes are characters: GLUE's files hold unpaired ones.
RowScan scan_tsv(std::string_view text, bool last, Values& values);
// The line is the one value, also if it is empty.
RowScan scan_plain_text(std::string_view text, bool last, Values& values);
// What the rows of JSON may hold in a column.
enum class JsonColumn : uint8_t {
  value,       // a value that is not nested
  label,       // the same; the error names --multi-label
  labels,      // the same, or an array of such values
  unread,      // the same, or nothing: rows may lack it
  unread_any,  // anything, or nothing
};
using JsonColumns = std::vector<JsonColumn>;
// An object on one line; values in the order of `columns`. Strings are unescaped, numbers and
// booleans as written, null is empty. White space around keys is no part of them. Other keys are
// ignored. `kinds` has one for each column, or none: all are values. An array or an object where it
// may stand is given as JSON; anywhere else it makes the row bad. A missing value is empty.
RowScan scan_json_line(std::string_view text, bool last, const std::vector<std::string>& columns,
                       Values& values, TextArena& arena, const JsonColumns& kinds = {});
// An object of an array, over as many lines as it has, with the comma before it, or, if it is the
// `first`, the bracket, and with the bracket behind the last one. An empty array gives no values.
RowScan scan_json_element(std::string_view text, bool last, bool first,
                          const std::vector<std::string>& columns, Values& values, TextArena& arena,
                          const JsonColumns& kinds = {});
// The keys of the object on the line, or none on a blank line.
RowScan scan_json_keys(std::string_view text, bool last, std::vector<std::string>& keys);
// The keys of an array's first object, or none of an empty one.
RowScan scan_json_element_keys(std::string_view text, bool last, std::vector<std::string>& keys);

}  // namespace finetune

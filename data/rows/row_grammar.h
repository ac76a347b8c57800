// Finds the end of a row and its values: one pure function per format, used by the readers of
// data/rows/records.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/text_arena.h"

namespace finetune {

// Limits of one row; they bound the memory that any file can take.
inline constexpr size_t kMostRowBytes = size_t{64} << 20;
inline constexpr size_t kMostColumns = 100'000;
inline constexpr std::string_view kTooManyValues =
    "more than 100,000 values in a row; is this the right file and delimiter?";

struct RowScan {
  enum class State { row, incomplete, bad };
  State state = State::row;
  size_t size = 0;            // bytes of the row with its line end
  uint32_t lines = 0;         // line ends in the row
  std::string problem{};      // bad: what is wrong, for the user
  uint32_t problem_line = 0;  // bad: lines below the row's first line
};

// Each function reads the row at the beginning of `text` (not empty) into `values`; a blank line
// gives no values. `last`: nothing follows `text`. Otherwise a row that might go on is incomplete.
using Values = std::vector<std::string_view>;
// RFC 4180; a lone CR also ends a row. A quote counts only at the beginning of a field.
RowScan scan_csv(std::string_view text, bool last, char delimiter, Values& values,
                 TextArena& arena);
// Values separated by tabs. Quotes are ordinary characters: GLUE's files hold unpaired ones.
RowScan scan_tsv(std::string_view text, bool last, Values& values);
// The line is the only value, even if it is empty.
RowScan scan_plain_text(std::string_view text, bool last, Values& values);
// Lines of fastText: "__label__food PIZZA 1 __label__big". Words that begin with "__label__" are
// labels wherever they stand. The values are the rest of the text and the label; several labels are
// a JSON array. A blank line has no values.
inline constexpr std::string_view kFasttextLabel = "__label__";
bool has_fasttext_label(std::string_view line);
RowScan scan_fasttext(std::string_view text, bool last, Values& values, TextArena& arena);
// What a JSON column may hold.
enum class JsonColumn : uint8_t {
  value,       // any value but an array or object
  optional,    // the same, or a missing key
  label,       // the same; the error names --multi-label
  labels,      // the same, or an array of such values
  unread,      // the same, or a missing key
  unread_any,  // anything, or a missing key
};
using JsonColumns = std::vector<JsonColumn>;
// Reads an object on one line; values are in the order of `columns`. Strings are unescaped, numbers
// and booleans are as written, null is empty. White space around keys is ignored, and so are other
// keys. `kinds` has one entry per column, or is empty: all are values. An allowed array or object
// is returned as JSON; elsewhere it makes the row bad. A missing value is empty.
RowScan scan_json_line(std::string_view text, bool last, const std::vector<std::string>& columns,
                       Values& values, TextArena& arena, const JsonColumns& kinds = {});
// Reads an object of an array, which may span lines, together with the comma before it (`first`:
// the opening bracket) and, after the last object, the closing bracket. An empty array gives no
// values.
RowScan scan_json_element(std::string_view text, bool last, bool first,
                          const std::vector<std::string>& columns, Values& values, TextArena& arena,
                          const JsonColumns& kinds = {});
// Reads the keys of the object on the line; a blank line has none.
RowScan scan_json_keys(std::string_view text, bool last, std::vector<std::string>& keys);
// Reads the keys of an array's first object; an empty array has none.
RowScan scan_json_element_keys(std::string_view text, bool last, std::vector<std::string>& keys);

}  // namespace finetune

// Options for reading rows: format, delimiter, encoding.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/source/byte_source.h"

namespace finetune {

// fasttext: lines of a text and __label__NAME, once or more (fasttext.cc).
enum class RowFormat { csv, tsv, jsonl, json, plain_text, fasttext };

struct RowOptions {
  bool skip_bad_rows = false;
  // The delimiter of CSV; 0 detects comma, semicolon, tab or bar, whichever gives the most columns
  // in the first row. If a delimiter is given, a file with a TSV suffix is read as CSV.
  char delimiter = '\0';
  std::string encoding{kAutoEncoding};
  std::optional<RowFormat> format{};  // default: by suffix and content
  // The columns to read; default all. Other columns may share a name, and may be missing in a later
  // file or row; their values are then empty.
  std::optional<std::vector<std::string>> columns{};
  // A JSON row may lack the keys of these columns; their values are then empty.
  std::vector<std::string> optional_columns{};
  // The label column. With `label_lists` its JSON values may be arrays, which are returned as JSON.
  std::string label_column{};
  bool label_lists = false;
  // Detect the format by the first line alone: an interactive writer waits for each answer.
  bool first_line_decides = false;
  // An input without a header has no rows; by default that is an error.
  bool may_be_empty = false;

  bool reads(const std::string& column) const;
  bool may_lack(const std::string& column) const;
  const std::vector<std::string>& named_columns() const;  // empty if none are named
};

// "auto" is 0; else "tab", "comma", "semicolon", "bar", or the character itself. Error(usage) for a
// letter, digit, quote, line end, or more than one byte.
char parse_delimiter(const std::string& word);

// "auto" is nullopt; else "csv", "tsv", "jsonl", "json", "text". Error(usage) for another word.
std::optional<RowFormat> parse_row_format(const std::string& word);

// Returns the format of the suffix (.csv .tsv .jsonl .ndjson .json .txt, before a suffix of
// compression). A .json file whose text begins with '[' is an array.
std::optional<RowFormat> format_by_suffix(const std::filesystem::path& path,
                                          std::string_view beginning);
// Detects the format by content. Text that begins with an object is JSON Lines, an array is JSON. A
// header with all of `columns`, or rows that look like a table (table_shape.h), are TSV or CSV.
// Anything else is plain text. `last`: nothing follows `text`.
RowFormat format_by_content(std::string_view text, bool last, char delimiter,
                            const std::vector<std::string>& columns);

// Detects the delimiter of CSV from its first row that is not blank; `text` is not empty. Returns
// nothing if more text is needed. `last`: nothing follows `text`.
std::optional<char> detect_delimiter(std::string_view text, bool last);

// "semicolons" and "semicolon", for messages.
std::string_view plural_of_delimiter(char delimiter);
std::string word_for_delimiter(char delimiter);

// Returns the delimiter that a first line "sep=;" names (Excel writes and reads such lines), or 0.
// Sets `size` to the length of that line including its end.
char delimiter_line(std::string_view text, size_t& size);

}  // namespace finetune

// How files of rows are read: their form, what is between values, their encoding.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/source/byte_source.h"

namespace finetune {

enum class RowFormat { csv, tsv, jsonl, json, plain_text };

struct RowOptions {
  bool skip_bad_rows = false;
  // What is between the values of CSV; 0: the comma, semicolon, tab or bar that makes the most
  // columns of the first row. With one that is given, files whose suffix says TSV are CSV.
  char delimiter = '\0';
  std::string encoding{kAutoEncoding};
  std::optional<RowFormat> format{};  // else by suffix and content
  // The columns whose values are read; without them, all. Others may share a name, and may be
  // missing in a later file or row: their values are then empty.
  std::optional<std::vector<std::string>> columns{};
  // The label's column. In JSON with `label_lists` its values may be arrays, which are given as
  // JSON.
  std::string label_column{};
  bool label_lists = false;
  // The format is found by the first line alone: whoever writes the rows waits for answers.
  bool first_line_decides = false;
  // An input without a header has no rows; otherwise that is an error.
  bool may_be_empty = false;

  bool reads(const std::string& column) const;
  const std::vector<std::string>& named_columns() const;  // empty: none are named
};

// "auto" is 0; "tab", "comma", "semicolon", "bar", or the character itself. Error(usage) for what
// cannot be between values: letters, digits, quotes, line ends, more than one byte.
char parse_delimiter(const std::string& word);

// "auto" is none; "csv", "tsv", "jsonl", "json", "text". Error(usage) for another word.
std::optional<RowFormat> parse_row_format(const std::string& word);

// The format that the suffix says (.csv .tsv .jsonl .ndjson .json .txt, a packing's suffix aside).
// A .json whose text begins with a bracket is an array.
std::optional<RowFormat> format_by_suffix(const std::filesystem::path& path,
                                          std::string_view beginning);
// The format that the text says: an object is JSON Lines, an array of objects JSON. A header with
// all of `columns`, or rows that look like a table (table_shape.h), are TSV or CSV. Anything else
// is plain text. `last`: nothing follows `text`.
RowFormat format_by_content(std::string_view text, bool last, char delimiter,
                            const std::vector<std::string>& columns);

// The delimiter of the CSV that begins with `text` (not empty) by its first row that is not blank;
// nothing if more of the text must be seen. `last`: there is no more of it.
std::optional<char> detect_delimiter(std::string_view text, bool last);

// "semicolons" and "semicolon", for messages.
std::string_view plural_of_delimiter(char delimiter);
std::string word_for_delimiter(char delimiter);

// The delimiter that a first line "sep=;" names, which Excel writes and reads; 0 without one.
// `size` becomes the length of that line with its end.
char delimiter_line(std::string_view text, size_t& size);

}  // namespace finetune

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
  // Standard input is what its first row says, if that has all these columns; else plain text.
  std::vector<std::string> stdin_columns{};
};

// "auto" is 0; "tab", "comma", "semicolon", "bar", or the character itself. Error(usage) for what
// cannot be between values: letters, digits, quotes, line ends, more than one byte.
char parse_delimiter(const std::string& word);

// "auto" is none; "csv", "tsv", "jsonl", "json", "text". Error(usage) for another word.
std::optional<RowFormat> parse_row_format(const std::string& word);

// By suffix (.csv .tsv .jsonl .ndjson .json .txt, a packing's suffix aside), else by content: an
// object is JSON Lines, an array JSON, lines with equally many tabs or commas are TSV or CSV. "-",
// the standard input, is plain text.
RowFormat detect_row_format(const std::filesystem::path& path, std::string_view beginning);

// The delimiter of the CSV that begins with `text` (not empty) by its first row that is not blank;
// nothing if more of the text must be seen. `last`: there is no more of it.
std::optional<char> detect_delimiter(std::string_view text, bool last);

// "semicolons", for messages.
std::string_view plural_of_delimiter(char delimiter);

}  // namespace finetune

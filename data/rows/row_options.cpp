// Parses options for rows, and detects formats and delimiters from a file's first rows.
#include "data/rows/row_options.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "core/error.h"
#include "data/json_cursor.h"
#include "data/rows/row_grammar.h"
#include "data/rows/table_shape.h"

namespace finetune {
namespace {

struct Delimiter {
  char character;
  std::string_view word, plural;
};
// The first of equally good delimiters wins.
constexpr Delimiter kDelimiters[] = {{',', "comma", "commas"},
                                     {';', "semicolon", "semicolons"},
                                     {'\t', "tab", "tabs"},
                                     {'|', "bar", "bars"}};

constexpr std::pair<std::string_view, RowFormat> kFormats[] = {{"csv", RowFormat::csv},
                                                               {"tsv", RowFormat::tsv},
                                                               {"jsonl", RowFormat::jsonl},
                                                               {"json", RowFormat::json},
                                                               {"text", RowFormat::plain_text}};

bool begins_object(std::string_view text) {
  if (!text.starts_with('{')) return false;
  text = trim(text.substr(1));
  // A Python dict is not JSON; read as JSON it gives an error that says so.
  const bool is_dict = text.starts_with('\'') && text.find("':") != std::string_view::npos;
  return text.empty() || text[0] == '"' || text[0] == '}' || is_dict;
}

// If the first element is not an object, as in ["a", "b"] or [["a"]], it must be complete.
bool begins_array(std::string_view text) {
  if (!text.starts_with('[')) return false;
  const std::string_view rest = trim(text.substr(1));
  if (rest.empty() || rest[0] == '{' || rest == "]") return true;
  if (rest[0] != '"' && rest[0] != '[') return false;
  try {
    JsonCursor cursor(rest);
    cursor.skip_value();
    return cursor.peek() == ',' || cursor.peek() == ']';
  } catch (const JsonFault&) {
    return false;
  }
}

bool may_delimit(char c) {
  return c == '\t' || (std::ispunct(static_cast<unsigned char>(c)) && c != '"');
}

}  // namespace

char parse_delimiter(const std::string& word) {
  if (word == "auto") return '\0';
  if (word == "\\t") return '\t';
  for (const Delimiter& known : kDelimiters) {
    if (word == known.word) return known.character;
  }
  const auto c = word.empty() ? '\0' : static_cast<unsigned char>(word[0]);
  if (word.size() == 1 && (word == "\t" || (std::isprint(c) && !std::isalnum(c) && c != '"'))) {
    return word[0];
  }
  throw usage_error("--delimiter ", in_quotes(word),
                    ": auto, comma, semicolon, tab, bar or one such character is possible");
}

std::optional<RowFormat> parse_row_format(const std::string& word) {
  if (word == "auto") return std::nullopt;
  for (const auto& [name, format] : kFormats) {
    if (word == name) return format;
  }
  throw usage_error("--input-format ", in_quotes(word),
                    ": auto, csv, tsv, jsonl, json and text are possible");
}

bool RowOptions::may_lack(const std::string& column) const {
  return std::find(optional_columns.begin(), optional_columns.end(), column) !=
         optional_columns.end();
}

bool RowOptions::reads(const std::string& column) const {
  return !columns || std::find(columns->begin(), columns->end(), column) != columns->end();
}

const std::vector<std::string>& RowOptions::named_columns() const {
  static const std::vector<std::string> none;
  return columns ? *columns : none;
}

std::optional<RowFormat> format_by_suffix(const std::filesystem::path& path,
                                          std::string_view beginning) {
  const std::string name = unpacked_name(path).string();
  constexpr std::pair<std::string_view, RowFormat> suffixes[] = {
      {".csv", RowFormat::csv},      {".tsv", RowFormat::tsv},    {".jsonl", RowFormat::jsonl},
      {".ndjson", RowFormat::jsonl}, {".json", RowFormat::jsonl}, {".txt", RowFormat::plain_text}};
  for (const auto& [suffix, format] : suffixes) {
    if (!ends_with_ignoring_case(name, suffix)) continue;
    const bool array = format == RowFormat::jsonl && trim(beginning).starts_with('[');
    return array ? RowFormat::json : format;
  }
  return std::nullopt;
}

RowFormat format_by_content(std::string_view text, bool last, char delimiter,
                            const std::vector<std::string>& columns) {
  const std::string_view trimmed = trim(text);
  if (begins_object(trimmed)) return RowFormat::jsonl;
  if (begins_array(trimmed)) return RowFormat::json;
  size_t size;
  if (delimiter_line(text, size) != '\0') return RowFormat::csv;
  std::optional<char> found = header_delimiter(text, last, delimiter, columns);
  if (!found && delimiter == '\0') found = table_delimiter(text, last);
  if (!found) return RowFormat::plain_text;
  return *found == '\t' && delimiter == '\0' ? RowFormat::tsv : RowFormat::csv;
}

char delimiter_line(std::string_view text, size_t& size) {
  constexpr std::string_view mark = "sep=";
  if (!text.starts_with(mark) || text.size() <= mark.size() + 1) return '\0';
  const char delimiter = text[mark.size()];
  const std::string_view rest = text.substr(mark.size() + 1);
  const size_t end = rest.starts_with("\r\n") ? 2 : rest[0] == '\n' || rest[0] == '\r' ? 1 : 0;
  size = mark.size() + 1 + end;
  return end == 0 || !may_delimit(delimiter) ? '\0' : delimiter;
}

std::optional<char> detect_delimiter(std::string_view text, bool last) {
  text.remove_prefix(std::min(text.find_first_not_of("\r\n"), text.size()));
  TextArena arena;
  Values values;
  char best = ',';
  size_t most = 1;
  for (const Delimiter& known : kDelimiters) {
    if (text.empty()) return last ? std::optional(',') : std::nullopt;
    const RowScan scan = scan_csv(text, last, known.character, values, arena);
    if (scan.state == RowScan::State::incomplete) return std::nullopt;
    if (values.size() >= kMostColumns) return known.character;  // such a row is refused
    if (scan.state == RowScan::State::bad || values.size() <= most) continue;
    most = values.size();
    best = known.character;
  }
  return best;
}

std::string_view plural_of_delimiter(char delimiter) {
  for (const Delimiter& known : kDelimiters) {
    if (delimiter == known.character) return known.plural;
  }
  return "other characters";
}

std::string word_for_delimiter(char delimiter) {
  for (const Delimiter& known : kDelimiters) {
    if (delimiter == known.character) return std::string(known.word);
  }
  return in_quotes(std::string_view(&delimiter, 1));
}

}  // namespace finetune

// Words of the options, and what the first rows of a file say.
#include "data/rows/row_options.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "core/error.h"
#include "data/rows/row_grammar.h"

namespace finetune {
namespace {

struct Delimiter {
  char character;
  std::string_view word, plural;
};
// Of equally good ones the first counts.
constexpr Delimiter kDelimiters[] = {{',', "comma", "commas"},
                                     {';', "semicolon", "semicolons"},
                                     {'\t', "tab", "tabs"},
                                     {'|', "bar", "bars"}};

constexpr std::pair<std::string_view, RowFormat> kFormats[] = {{"csv", RowFormat::csv},
                                                               {"tsv", RowFormat::tsv},
                                                               {"jsonl", RowFormat::jsonl},
                                                               {"json", RowFormat::json},
                                                               {"text", RowFormat::plain_text}};

// True if the first lines, read so, all have equally many values, more than one.
bool looks_like(RowFormat format, std::string_view beginning) {
  TextArena arena;
  Values values;
  size_t width = 0;
  const char delimiter = detect_delimiter(beginning, true).value_or(',');
  for (int lines = 0; lines < 5 && !beginning.empty();) {
    RowScan scan = format == RowFormat::csv ? scan_csv(beginning, false, delimiter, values, arena)
                                            : scan_tsv(beginning, false, values);
    if (scan.state == RowScan::State::incomplete) break;
    if (scan.state == RowScan::State::bad) return false;
    beginning.remove_prefix(scan.size);
    if (values.empty()) continue;
    if (values.size() == 1 || (width && values.size() != width)) return false;
    width = values.size();
    ++lines;
  }
  return width > 1;
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

RowFormat detect_row_format(const std::filesystem::path& path, std::string_view beginning) {
  if (path == "-") return RowFormat::plain_text;
  const std::string_view text = trim(beginning);
  const std::string name = unpacked_name(path).string();
  constexpr std::pair<std::string_view, RowFormat> suffixes[] = {
      {".csv", RowFormat::csv},      {".tsv", RowFormat::tsv},    {".jsonl", RowFormat::jsonl},
      {".ndjson", RowFormat::jsonl}, {".json", RowFormat::jsonl}, {".txt", RowFormat::plain_text}};
  for (const auto& [suffix, format] : suffixes) {
    if (!ends_with_ignoring_case(name, suffix)) continue;
    return format == RowFormat::jsonl && text.starts_with('[') ? RowFormat::json : format;
  }
  if (text.starts_with('{')) return RowFormat::jsonl;
  if (text.starts_with('[') && trim(text.substr(1)).starts_with('{')) return RowFormat::json;
  if (looks_like(RowFormat::tsv, beginning)) return RowFormat::tsv;
  if (looks_like(RowFormat::csv, beginning)) return RowFormat::csv;
  return RowFormat::plain_text;
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

}  // namespace finetune

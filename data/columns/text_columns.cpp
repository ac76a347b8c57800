// Looks columns up by name, and advises if one is missing.
#include "data/columns/text_columns.h"

#include <algorithm>
#include <fstream>

#include "core/error.h"
#include "core/text/text.h"
#include "data/source/byte_source.h"

namespace finetune {
namespace {

constexpr size_t kListedColumns = 20;

std::string listed(const std::vector<std::string>& columns) {
  std::string out = columns.size() == 1 ? "there is only " : "there are ";
  for (size_t i = 0; i < columns.size(); ++i) {
    if (i == kListedColumns) return out + concat(" and ", columns.size() - i, " more");
    out += concat(i == 0 ? "" : ", ", in_quotes(columns[i]));
  }
  return out;
}

// A model stores its text columns by name.
void require_name(const std::vector<std::string>& columns, size_t column,
                  const std::filesystem::path& file) {
  if (!columns[column].empty()) return;
  throw data_error(file.string(), ": column ", column + 1,
                   " has the text and no name; name it in the header");
}

// The option's list is cut at its commas before the columns are known. A column's name may have
// commas too, so parts are joined again if the result is a column.
std::vector<std::string> named_columns(const std::vector<std::string>& words,
                                       const std::vector<std::string>& columns) {
  const auto is_column = [&](const std::string& name) {
    return std::find(columns.begin(), columns.end(), name) != columns.end();
  };
  std::vector<std::string> names;
  for (size_t i = 0; i < words.size();) {
    size_t end = i + 1;
    std::string name = words[i];
    for (std::string joined = name; !is_column(name) && end < words.size();) {
      joined += "," + words[end++];
      if (is_column(joined)) name = joined;
    }
    if (!is_column(name)) {  // names in files are trimmed, too
      name = std::string(trim(name));
      end = i + 1;
    }
    names.push_back(std::move(name));
    i = end;
  }
  return names;
}

bool names_column(std::string_view line, std::string_view name) {
  constexpr std::string_view kBorders = "\"',;|\t\r";
  const auto is_border = [&](size_t place) {
    return place >= line.size() || kBorders.find(line[place]) != std::string_view::npos;
  };
  for (size_t at = line.find(name); at != std::string_view::npos; at = line.find(name, at + 1)) {
    if ((at == 0 || is_border(at - 1)) && is_border(at + name.size())) return true;
  }
  return false;
}

// Banks write lines about the account before the header. Returns an empty string if none of the
// first lines has the name.
std::string advice_on_later_line(std::string_view name, const std::filesystem::path& file) {
  constexpr size_t kMostBytes = 1 << 16;
  std::error_code error;
  if (name.empty() || !std::filesystem::is_regular_file(file, error)) return "";
  const std::string text = beginning_of_text(file, kMostBytes);
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || text[first] == '{' || text[first] == '[') return "";  // JSON
  int64_t number = 0;
  for (std::string_view line : split(text, '\n')) {
    if (++number == 1 || !names_column(line, name)) continue;
    std::string as_stored(text.size(), '\0');
    std::ifstream(file, std::ios::binary).read(as_stored.data(), std::streamsize(text.size()));
    return concat("; line ", number, " has it: if that is the header, leave out what is before it",
                  as_stored == text ? concat(" (tail -n +", number, ")") : std::string());
  }
  return "";
}

std::string advice(const std::vector<std::string>& columns, std::string_view name,
                   const std::filesystem::path& file, std::string_view option) {
  if (columns.size() == 1 && columns[0].find_first_of(",;|\t^~") != std::string::npos) {
    return "; if that is several, --delimiter names what is between them";
  }
  if (columns.size() == 1 && ends_with_ignoring_case(file.string(), ".txt")) {
    return "; a .txt has a text a line: if it is a table, --delimiter says so";
  }
  const std::string later = advice_on_later_line(name, file);
  return later.empty() ? concat("; choose one with ", option) : later;
}

// Returns the columns that --number-columns or --category-columns names.
std::vector<size_t> side_columns(const std::vector<std::string>& words,
                                 const std::vector<std::string>& columns,
                                 const std::filesystem::path& file, const std::string& label,
                                 std::string_view option) {
  std::vector<size_t> found;
  for (const std::string& name : named_columns(words, columns)) {
    if (name == label) throw usage_error(option, " ", in_quotes(name), " is the label column");
    const size_t column = find_column(columns, name, file, option);
    if (std::find(found.begin(), found.end(), column) != found.end()) {
      throw usage_error(option, " ", in_quotes(name), " is given twice");
    }
    found.push_back(column);
  }
  return found;
}

}  // namespace

size_t find_column(const std::vector<std::string>& columns, std::string_view name,
                   const std::filesystem::path& file, std::string_view option) {
  auto found = std::find(columns.begin(), columns.end(), name);
  if (found != columns.end()) return size_t(found - columns.begin());
  throw data_error(file.string(), ": no column ", in_quotes(name), " (", listed(columns),
                   advice(columns, name, file, option), ")");
}

std::vector<std::string> ColumnNames::of_texts() const {
  std::vector<std::string> columns = text;
  if (columns.empty()) columns.emplace_back("text");
  for (std::string& name : columns) name = std::string(trim(name));
  if (!pair.empty()) columns.push_back(pair);
  for (const auto* names : {&numbers, &categories}) {
    for (const std::string& name : *names) columns.emplace_back(trim(name));
  }
  return columns;
}

bool TextColumns::is_beside(size_t column) const {
  return std::find(numbers.begin(), numbers.end(), column) != numbers.end() ||
         std::find(categories.begin(), categories.end(), column) != categories.end();
}

TextColumns find_text_columns(const std::vector<std::string>& columns,
                              const std::filesystem::path& file, const ColumnNames& names) {
  TextColumns found;
  if (!names.pair.empty()) {
    found.pair = find_column(columns, names.pair, file, "--text-pair-column");
  }
  for (const std::string& name : named_columns(names.text, columns)) {
    if (name == names.label) {
      throw usage_error("--text-column ", in_quotes(name), " is the label column too");
    }
    const size_t column = find_column(columns, name, file, "--text-column");
    if (std::find(found.text.begin(), found.text.end(), column) != found.text.end()) {
      throw usage_error("--text-column ", in_quotes(name), " is given twice");
    }
    require_name(columns, column, file);
    found.text.push_back(column);
  }
  found.numbers = side_columns(names.numbers, columns, file, names.label, "--number-columns");
  found.categories =
      side_columns(names.categories, columns, file, names.label, "--category-columns");
  if (names.pair == names.label) {
    throw usage_error("--text-pair-column ", in_quotes(names.label), " is the label column too");
  }
  if (!found.text.empty()) return found;

  std::vector<size_t> candidates;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] == names.label || found.pair == i || found.is_beside(i)) continue;
    if (columns[i] == "text") candidates.clear();
    candidates.push_back(i);
    if (columns[i] == "text") break;
  }
  if (candidates.size() == 1) {
    require_name(columns, candidates[0], file);
    found.text = candidates;
    return found;
  }
  if (candidates.empty()) {
    throw data_error(
        file.string(), ": no column is left for the text (", listed(columns), "; the label is ",
        in_quotes(names.label),
        found.pair ? concat(", the second text ", in_quotes(columns[*found.pair])) : "", ")");
  }
  throw data_error(file.string(), ": no column 'text' (", listed(columns),
                   "; choose one with --text-column)");
}

std::string_view joined_text(RowValues row, const TextColumns& columns, std::string& buffer) {
  if (columns.text.size() == 1) return row[columns.text[0]];
  buffer.clear();
  for (size_t i = 0; i < columns.text.size(); ++i) {
    if (i > 0) buffer += ' ';
    buffer += row[columns.text[i]];
  }
  return buffer;
}

TextSum text_sum_of(RowValues row, const TextColumns& columns) {
  std::vector<std::string_view> parts;
  for (size_t column : columns.text) parts.push_back(row[column]);
  if (columns.pair) parts.push_back(row[*columns.pair]);
  return text_sum(parts);
}

std::optional<std::string> empty_text_column(RowValues row, const TextColumns& columns,
                                             const std::vector<std::string>& names) {
  auto empty = [&](size_t column) { return trim(row[column]).empty(); };
  if (std::all_of(columns.text.begin(), columns.text.end(), empty)) return names[columns.text[0]];
  if (columns.pair && empty(*columns.pair)) return names[*columns.pair];
  return std::nullopt;
}

}  // namespace finetune

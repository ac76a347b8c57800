// Finds text columns by name, and tokenizes rows on all threads.
#include "tasks/classification/rows/text_columns.h"

#include <algorithm>
#include <fstream>

#include "core/error.h"
#include "core/text/text.h"
#include "core/threads/parallel.h"
#include "data/source/byte_source.h"
#include "tasks/classification/evaluation/slices.h"
#include "tasks/classification/rows/text_windows.h"
#include "tasks/pair_types.h"
#include "tokenizer/encoding.h"

namespace finetune {
namespace {

constexpr int64_t kDefaultMaxLength = 128;
constexpr int64_t kRowsPerPiece = 256;
constexpr size_t kListedColumns = 20;

std::string listed(const std::vector<std::string>& columns) {
  std::string out = columns.size() == 1 ? "there is only " : "there are ";
  for (size_t i = 0; i < columns.size(); ++i) {
    if (i == kListedColumns) return out + concat(" and ", columns.size() - i, " more");
    out += concat(i == 0 ? "" : ", ", in_quotes(columns[i]));
  }
  return out;
}

// What one thread makes of consecutive rows.
struct Piece : TextCounts {
  std::vector<int32_t> ids;
  std::vector<int64_t> ends;  // in ids, one for each sample
  std::vector<uint32_t> second;
  std::vector<int64_t> windows;  // of each row
};

void encode_piece(const Tokenizer& tokenizer, std::span<const RowValues> rows,
                  const TextColumns& columns, int64_t max_length, const LongTexts& long_texts,
                  Piece& piece) {
  const SpecialTokens& special = tokenizer.special();
  TokenBuffer tokens;
  const int64_t around = columns.pair ? special.around_pair() : special.around_single();
  std::string buffer;
  std::vector<TextWindow> windows;
  for (RowValues row : rows) {
    tokens.clear();
    tokenizer.encode(joined_text(row, columns, buffer), tokens);
    const int64_t first = int64_t(tokens.size());
    std::optional<int64_t> second;
    if (columns.pair) {
      tokenizer.encode(row[*columns.pair], tokens);
      second = int64_t(tokens.size()) - first;
    }
    const int64_t lost = cut_to_windows(first, second, max_length - around, long_texts, windows);
    piece.truncated += lost > 0;
    piece.lost += lost;
    piece.text_tokens += int64_t(tokens.size()) + around;
    piece.unknown += std::count(tokens.ids.begin(), tokens.ids.end(), special.unk);
    piece.windows.push_back(int64_t(windows.size()));
    for (const TextWindow& window : windows) {
      const int32_t* a = tokens.ids.data() + window.first.begin;
      const int64_t length = window.first.end - window.first.begin;
      piece.second.push_back(
          second ? append_pair(special, a, length, tokens.ids.data() + first + window.second.begin,
                               window.second.end - window.second.begin, piece.ids)
                 : append_single(special, a, length, piece.ids));
      piece.ends.push_back(int64_t(piece.ids.size()));
    }
  }
}

// A model keeps its text columns by their names.
void require_name(const std::vector<std::string>& columns, size_t column,
                  const std::filesystem::path& file) {
  if (!columns[column].empty()) return;
  throw data_error(file.string(), ": column ", column + 1,
                   " has the text and no name; name it in the header");
}

// A list was cut at its commas before anybody knew the columns, whose names may have commas too.
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
    if (!is_column(name)) {  // as files' names are: without white space around them
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

// Banks write lines about the account before the header. Empty where none of the first lines has
// the name.
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

}  // namespace

size_t find_column(const std::vector<std::string>& columns, std::string_view name,
                   const std::filesystem::path& file, std::string_view option) {
  auto found = std::find(columns.begin(), columns.end(), name);
  if (found != columns.end()) return size_t(found - columns.begin());
  throw data_error(file.string(), ": no column ", in_quotes(name), " (", listed(columns),
                   advice(columns, name, file, option), ")");
}

RowOptions row_options_of(const TaskOptions& options, bool without_label) {
  RowOptions rows = options.rows;
  std::vector<std::string>& columns = rows.columns.emplace(options.text_columns);
  if (columns.empty()) columns.emplace_back("text");
  for (std::string& name : columns) name = std::string(trim(name));
  if (!options.text_pair_column.empty()) columns.push_back(options.text_pair_column);
  if (without_label) return rows;
  columns.push_back(options.label_column);
  rows.label_column = options.label_column;
  rows.label_lists = !options.multi_label_separator.empty();
  if (!options.eval_group.empty()) columns.push_back(options.eval_group);
  for (const std::string& slice : options.slices) {
    columns.push_back(slice.starts_with(Slices::kSeen) ? slice.substr(Slices::kSeen.size())
                                                       : slice);
  }
  return rows;
}

TextColumns find_text_columns(const std::vector<std::string>& columns,
                              const std::filesystem::path& file, const TaskOptions& options) {
  TextColumns found;
  if (!options.text_pair_column.empty()) {
    found.pair = find_column(columns, options.text_pair_column, file, "--text-pair-column");
  }
  for (const std::string& name : named_columns(options.text_columns, columns)) {
    if (name == options.label_column) {
      throw usage_error("--text-column ", in_quotes(name), " is the label column too");
    }
    const size_t column = find_column(columns, name, file, "--text-column");
    if (std::find(found.text.begin(), found.text.end(), column) != found.text.end()) {
      throw usage_error("--text-column ", in_quotes(name), " is given twice");
    }
    require_name(columns, column, file);
    found.text.push_back(column);
  }
  if (options.text_pair_column == options.label_column) {
    throw usage_error("--text-pair-column ", in_quotes(options.label_column),
                      " is the label column too");
  }
  if (!found.text.empty()) return found;

  std::vector<size_t> candidates;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] == options.label_column || found.pair == i) continue;
    if (columns[i] == "text") return {{i}, found.pair};
    candidates.push_back(i);
  }
  if (candidates.size() == 1) {
    require_name(columns, candidates[0], file);
    return {candidates, found.pair};
  }
  if (candidates.empty()) {
    throw data_error(
        file.string(), ": no column is left for the text (", listed(columns), "; the label is ",
        in_quotes(options.label_column),
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

int64_t least_max_length(bool pairs) {
  return pairs ? SpecialTokens{}.around_pair() + 2 : SpecialTokens{}.around_single() + 1;
}

int64_t checked_max_length(int64_t asked, const EncoderConfig& config, bool pairs) {
  int64_t positions = config.max_length();
  if (pairs) require_pair_types(config, "--text-pair-column");
  int64_t length = asked == 0 ? std::min(kDefaultMaxLength, positions) : asked;
  if (length > positions) {
    throw usage_error("--max-length ", length, " is beyond the model's ", positions, " positions");
  }
  int64_t least = least_max_length(pairs);
  if (length < least) {
    throw usage_error("--max-length ", length, " leaves no room for text (at least ", least, ")");
  }
  return length;
}

SampleSet encode_rows(const Tokenizer& tokenizer, std::span<const RowValues> rows,
                      const TextColumns& columns, int64_t max_length, const LongTexts& long_texts) {
  int64_t count = int64_t(rows.size());
  std::vector<Piece> pieces(size_t((count + kRowsPerPiece - 1) / kRowsPerPiece));
  parallel_ranges(count, kRowsPerPiece, [&](int64_t begin, int64_t end) {
    encode_piece(tokenizer, rows.subspan(size_t(begin), size_t(end - begin)), columns, max_length,
                 long_texts, pieces[size_t(begin / kRowsPerPiece)]);
  });

  SampleSet set;
  set.examples = count;
  size_t tokens = 0, samples = 0;
  for (const Piece& piece : pieces) {
    tokens += piece.ids.size();
    samples += piece.second.size();
  }
  set.samples.ids.reserve(tokens);
  set.samples.offsets.reserve(samples + 1);
  set.samples.second.reserve(samples);
  if (long_texts.in_windows) set.first_window.push_back(0);
  for (Piece& piece : pieces) {
    int64_t start = int64_t(set.samples.ids.size());
    set.samples.ids.insert(set.samples.ids.end(), piece.ids.begin(), piece.ids.end());
    for (int64_t end : piece.ends) set.samples.offsets.push_back(start + end);
    set.samples.second.insert(set.samples.second.end(), piece.second.begin(), piece.second.end());
    for (int64_t windows : piece.windows) {
      if (long_texts.in_windows) set.first_window.push_back(set.first_window.back() + windows);
    }
    set.add_counts(piece);
    piece = {};
  }
  return set;
}

}  // namespace finetune

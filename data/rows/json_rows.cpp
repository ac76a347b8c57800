// Scans rows of JSON: one object per line (JSON Lines), or the objects of one array.
#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <utility>

#include "core/option_advice.h"
#include "core/text/text.h"
#include "data/json_cursor.h"
#include "data/rows/row_grammar.h"

namespace finetune {
namespace {

RowScan bad_object(const JsonFault& fault, std::string_view object, const char* where) {
  const std::string_view before = object.substr(0, fault.at);
  return {.state = RowScan::State::bad,
          .problem = concat("not a JSON object: ", fault.what, " (byte ", fault.at + 1, where, ")"),
          .problem_line = uint32_t(std::count(before.begin(), before.end(), '\n'))};
}

// Reads the line at the beginning of `text` as an object and calls member(cursor, key) for each
// key. A fault becomes a bad row with its place in the line.
template <typename Member>
RowScan scan_object(std::string_view text, bool last, Member&& member) {
  RowScan scan;
  const void* end = std::memchr(text.data(), '\n', text.size());
  if (!end && !last) return {.state = RowScan::State::incomplete};
  std::string_view line =
      text.substr(0, end ? size_t(static_cast<const char*>(end) - text.data()) : text.size());
  scan.size = line.size() + (end != nullptr);
  scan.lines = 1;
  JsonCursor cursor(line);
  try {
    if (cursor.at_end()) return scan;
    if (trim(line) == "{") {
      cursor.fail(
          "an object over several lines; one line holds one (jq -c . writes them so, pandas' "
          "to_json(FILE, orient=\"records\", lines=True)), or the file an array of them");
    }
    if (cursor.peek() == '[') cursor.fail("an array; JSON Lines hold one object on each line");
    cursor.object([&](const JsonString& key) { member(cursor, key); });
    if (!cursor.at_end()) cursor.fail("text after the object; one object on each line is expected");
  } catch (const JsonFault& fault) {
    return bad_object(fault, line, " of the line");
  }
  return scan;
}

// Returns the end of the object or array that begins `text`, or nothing if `text` does not hold all
// of it.
std::optional<size_t> end_of_nested(std::string_view text) {
  bool in_string = false;
  int64_t depth = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') ++at;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth <= 0) {
      return at + 1;
    }
  }
  return std::nullopt;
}

// Reads the array element at the beginning of `text`, as scan_object does for a line.
template <typename Member>
RowScan scan_element(std::string_view text, bool last, bool first, Member&& member) {
  size_t at = 0;
  const auto skip_space = [&] {
    at = std::min(text.find_first_not_of(" \t\r\n", at), text.size());
  };
  const auto lines_to = [&](size_t end) {
    return uint32_t(std::count(text.begin(), text.begin() + ptrdiff_t(end), '\n'));
  };
  const auto bad = [&](std::string_view problem) {
    return RowScan{.state = RowScan::State::bad,
                   .problem = std::string(problem),
                   .problem_line = lines_to(at)};
  };
  const auto at_end = [&] {
    return last ? bad("the array ends without ']'; is the file cut short?")
                : RowScan{.state = RowScan::State::incomplete};
  };
  // Skips the end of the array; nothing may follow it.
  const auto close = [&](RowScan scan) {
    ++at;
    skip_space();
    if (at == text.size() && !last) return RowScan{.state = RowScan::State::incomplete};
    if (at < text.size()) return bad("text after the array");
    scan.size = at;
    scan.lines = lines_to(at);
    return scan;
  };
  skip_space();
  if (at == text.size()) return at_end();
  if (text[at] != (first ? '[' : ',')) {
    return bad(first ? "an array is expected" : "',' or ']' is expected between objects");
  }
  ++at;
  skip_space();
  if (at == text.size()) return at_end();
  if (first && text[at] == ']') return close({});
  if (text[at] != '{') return bad("an object is expected: the array's elements are the rows");
  const std::optional<size_t> size = end_of_nested(text.substr(at));
  if (!size) return at_end();
  const std::string_view object = text.substr(at, *size);
  const size_t begin = at;
  at += *size;
  skip_space();
  if (at == text.size()) return at_end();
  RowScan scan{.size = begin + *size, .lines = lines_to(begin + *size)};
  JsonCursor cursor(object);
  try {
    cursor.object([&](const JsonString& key) { member(cursor, key); });
  } catch (const JsonFault& fault) {
    scan.state = RowScan::State::bad;
    const RowScan problem = bad_object(fault, object, " of the object");
    scan.problem = problem.problem;
    scan.problem_line = lines_to(begin) + problem.problem_line;
  }
  return text[at] == ']' ? close(std::move(scan)) : scan;
}

// As in CSV, a NUL is refused: files that are read again would contain it.
void require_no_nul(std::string_view text, const JsonString& string) {
  if (text.find('\0') == std::string_view::npos) return;
  throw JsonFault{string.at, "a string with a NUL character (\\u0000)"};
}

// Returns a key as a column name, without white space around it.
std::string column_name(const JsonString& key) {
  std::string name(trim(text_of(key)));
  require_no_nul(name, key);
  return name;
}

// The keys of the first object. Also detects pandas' to_json() without orient="records", which
// writes columns instead of rows: {"text":{"0":"a","1":"b"}}, and a dict of lists:
// {"text":["a","b"],"label":["x","y"]}.
class FirstKeys {
 public:
  explicit FirstKeys(std::vector<std::string>& keys) : keys_(keys) { keys_.clear(); }

  void take(JsonCursor& cursor, const JsonString& key) {
    if (keys_.size() == kMostColumns) cursor.fail(std::string(kTooManyValues));
    keys_.push_back(column_name(key));
    objects_ += cursor.peek() == '{';
    const bool is_list = cursor.peek() == '[';
    if (holds_rows(cursor))
      rows_key_ = keys_.back();
    else
      lists_ += is_list;
  }

  RowScan finish(RowScan scan) const {
    if (scan.state != RowScan::State::row) return scan;
    if (is_of_columns()) {
      scan.problem =
          "one object that holds a whole table, as pandas' to_json() writes it; write its rows "
          "with to_json(FILE, orient=\"records\", lines=True)";
    } else if (lists_ > 1 && lists_ == keys_.size()) {
      scan.problem =
          "one object that holds a whole table, a list for each column; write its rows one on each "
          "line (pandas' DataFrame(table).to_json(FILE, orient=\"records\", lines=True))";
    } else if (keys_ == std::vector<std::string>{rows_key_}) {
      scan.problem = concat("one object that holds all rows under ", in_quotes(rows_key_),
                            "; write them one on each line (jq -c '.", rows_key_, "[]')");
    } else {
      return scan;
    }
    scan.state = RowScan::State::bad;
    return scan;
  }

 private:
  bool is_of_columns() const {
    using Keys = std::vector<std::string>;
    return (!keys_.empty() && objects_ == keys_.size()) ||
           keys_ == Keys{"columns", "index", "data"} || keys_ == Keys{"schema", "data"};
  }

  // Skips the value and returns whether it is an array of objects.
  static bool holds_rows(JsonCursor& cursor) {
    if (cursor.peek() != '[') {
      cursor.skip_value();
      return false;
    }
    size_t elements = 0, objects = 0;
    cursor.array([&] {
      ++elements;
      objects += cursor.peek() == '{';
      cursor.skip_value();
    });
    return elements > 0 && objects == elements;
  }

  std::vector<std::string>& keys_;
  std::string rows_key_;
  size_t objects_ = 0;
  size_t lists_ = 0;  // arrays, except arrays of objects
};

// Returns the next array or object as written.
std::string_view nested_value(JsonCursor& cursor, std::string_view name, JsonColumn kind) {
  const size_t begin = cursor.position();
  const bool is_array = cursor.peek() == '[';
  if (kind == JsonColumn::unread_any) {
    cursor.skip_value();
    return cursor.text_from(begin);
  }
  if (kind == JsonColumn::label && is_array) {
    cursor.fail(concat("key ", in_quotes(name), " has a list of labels",
                       option_advice("; --multi-label SEP reads lists")));
  }
  if (kind != JsonColumn::labels || !is_array) {
    cursor.fail(concat("key ", in_quotes(name),
                       " has a nested value; strings, numbers, true, false and null can be "
                       "columns: leave the key out (jq -c 'del(.KEY)')"));
  }
  cursor.array([&] {
    const char first = cursor.peek();
    if (first == '{' || first == '[') {
      cursor.fail(
          concat("key ", in_quotes(name), " has a list that holds something other than names"));
    }
    cursor.skip_value();
  });
  return cursor.text_from(begin);
}

std::string_view value_of(JsonCursor& cursor, std::string_view name, JsonColumn kind,
                          std::string& scratch, TextArena& arena) {
  const char first = cursor.peek();
  if (first == '{' || first == '[') return nested_value(cursor, name, kind);
  if (first != '"') {
    std::string_view written = cursor.scalar();
    return written == "null" ? "" : written;
  }
  JsonString string = cursor.string();
  if (!string.escaped) return string.raw;
  scratch.clear();
  append_text(string, scratch);
  require_no_nul(scratch, string);
  return arena.keep(scratch);
}

// Extracts the values of `columns` from one object.
class RowValues {
 public:
  RowValues(const std::vector<std::string>& columns, Values& values, TextArena& arena,
            const JsonColumns& kinds)
      : columns_(columns), values_(values), arena_(arena), kinds_(kinds) {
    values_.assign(columns.size(), std::string_view());  // data() == nullptr: key not seen yet
  }

  void take(JsonCursor& cursor, const JsonString& key) {
    std::string decoded;
    std::string_view name = key.raw;
    if (key.escaped) name = decoded = text_of(key);
    name = trim(name);
    size_t column = next_;
    if (column >= columns_.size() || columns_[column] != name) column = find(name);
    if (column == columns_.size()) {
      cursor.skip_value();
      return;
    }
    if (values_[column].data()) cursor.fail(concat("key ", in_quotes(name), " occurs twice"));
    values_[column] = value_of(cursor, name, kind_of(column), scratch_, arena_);
    next_ = column + 1;
    ++seen_;
  }

  // Completes a scanned row: no values if it is `blank`, a bad row if a required key is missing.
  RowScan finish(RowScan scan, bool blank) {
    if (scan.state != RowScan::State::row) return scan;
    if (seen_ == 0 && blank) {
      values_.clear();
    } else if (seen_ < columns_.size()) {
      for (size_t i = 0; i < columns_.size(); ++i) {
        if (values_[i].data()) continue;
        values_[i] = "";
        const JsonColumn kind = kind_of(i);
        if (kind == JsonColumn::optional || kind == JsonColumn::unread ||
            kind == JsonColumn::unread_any) {
          continue;
        }
        scan.problem = concat("key ", in_quotes(columns_[i]), " is missing");
        scan.state = RowScan::State::bad;
        break;
      }
    }
    return scan;
  }

 private:
  JsonColumn kind_of(size_t column) const {
    return column < kinds_.size() ? kinds_[column] : JsonColumn::value;
  }

  // Linear search from the expected place first: most rows have few keys, nearly in order.
  size_t find(std::string_view name) {
    constexpr int kMostSearches = 32;
    if (searches_ < kMostSearches) {
      ++searches_;
      return size_t(std::find(columns_.begin(), columns_.end(), name) - columns_.begin());
    }
    if (places_.empty()) {
      for (size_t i = 0; i < columns_.size(); ++i) places_.emplace(columns_[i], i);
    }
    const auto found = places_.find(name);
    return found == places_.end() ? columns_.size() : found->second;
  }

  const std::vector<std::string>& columns_;
  Values& values_;
  TextArena& arena_;
  const JsonColumns& kinds_;
  std::string scratch_;
  size_t next_ = 0;  // most rows have the key order of the first
  size_t seen_ = 0;
  int searches_ = 0;
  std::unordered_map<std::string_view, size_t> places_;
};

}  // namespace

RowScan scan_json_line(std::string_view text, bool last, const std::vector<std::string>& columns,
                       Values& values, TextArena& arena, const JsonColumns& kinds) {
  RowValues row(columns, values, arena, kinds);
  RowScan scan = scan_object(
      text, last, [&](JsonCursor& cursor, const JsonString& key) { row.take(cursor, key); });
  const bool is_blank = trim(text.substr(0, scan.size)).empty();
  return row.finish(std::move(scan), is_blank);
}

RowScan scan_json_keys(std::string_view text, bool last, std::vector<std::string>& keys) {
  FirstKeys first(keys);
  return first.finish(scan_object(
      text, last, [&](JsonCursor& cursor, const JsonString& key) { first.take(cursor, key); }));
}

RowScan scan_json_element(std::string_view text, bool last, bool first,
                          const std::vector<std::string>& columns, Values& values, TextArena& arena,
                          const JsonColumns& kinds) {
  RowValues row(columns, values, arena, kinds);
  bool object = false;
  RowScan scan = scan_element(text, last, first, [&](JsonCursor& cursor, const JsonString& key) {
    object = true;
    row.take(cursor, key);
  });
  return row.finish(std::move(scan), !object);
}

RowScan scan_json_element_keys(std::string_view text, bool last, std::vector<std::string>& keys) {
  FirstKeys first(keys);
  return first.finish(
      scan_element(text, last, true,
                   [&](JsonCursor& cursor, const JsonString& key) { first.take(cursor, key); }));
}

}  // namespace finetune

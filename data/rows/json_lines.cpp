// Rows of JSON Lines: one object a line.
#include <algorithm>
#include <cstring>

#include "core/text/text.h"
#include "data/json_cursor.h"
#include "data/rows/row_grammar.h"

namespace finetune {
namespace {

// The line at the beginning of `text` as an object: member(cursor, key) for each. A fault becomes
// a bad row, with its place in the line.
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
    if (cursor.peek() == '[') cursor.fail("an array; JSON Lines hold one object on each line");
    cursor.object([&](const JsonString& key) { member(cursor, key); });
    if (!cursor.at_end()) cursor.fail("text after the object; one object on each line is expected");
  } catch (const JsonFault& fault) {
    return {RowScan::State::bad, 0, 0,
            concat("not a JSON object: ", fault.what, " (byte ", fault.at + 1, " of the line)"), 0};
  }
  return scan;
}

std::string_view value_of(JsonCursor& cursor, std::string& scratch, TextArena& arena) {
  char first = cursor.peek();
  if (first == '{' || first == '[') {
    cursor.fail("a nested value; strings, numbers, true, false and null can be columns");
  }
  if (first != '"') {
    std::string_view written = cursor.scalar();
    return written == "null" ? "" : written;
  }
  JsonString string = cursor.string();
  if (!string.escaped) return string.raw;
  scratch.clear();
  append_text(string, scratch);
  return arena.keep(scratch);
}

}  // namespace

RowScan scan_json_line(std::string_view text, bool last, const std::vector<std::string>& columns,
                       Values& values, TextArena& arena) {
  values.assign(columns.size(), std::string_view());  // no data(): not seen
  std::string scratch;
  size_t next = 0;  // most rows keep the order of the first
  size_t seen = 0;
  RowScan scan = scan_object(text, last, [&](JsonCursor& cursor, const JsonString& key) {
    std::string decoded;
    std::string_view name = key.raw;
    if (key.escaped) name = decoded = text_of(key);
    size_t column = next;
    if (column >= columns.size() || columns[column] != name) {
      column = size_t(std::find(columns.begin(), columns.end(), name) - columns.begin());
    }
    if (column == columns.size()) {
      cursor.skip_value();
      return;
    }
    if (values[column].data()) cursor.fail(concat("key ", in_quotes(name), " occurs twice"));
    values[column] = value_of(cursor, scratch, arena);
    next = column + 1;
    ++seen;
  });
  if (scan.state != RowScan::State::row) return scan;
  if (seen == 0 && trim(text.substr(0, scan.size)).empty()) {
    values.clear();
  } else if (seen < columns.size()) {
    size_t missing = 0;
    while (values[missing].data()) ++missing;
    scan.problem = concat("key ", in_quotes(columns[missing]), " is missing");
    scan.state = RowScan::State::bad;
  }
  return scan;
}

RowScan scan_json_keys(std::string_view text, bool last, std::vector<std::string>& keys) {
  keys.clear();
  return scan_object(text, last, [&](JsonCursor& cursor, const JsonString& key) {
    keys.push_back(text_of(key));
    cursor.skip_value();
  });
}

}  // namespace finetune

// Recognises question files by their first keys or by their header.
#include "data/questions/squad_form.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "core/files/files.h"
#include "core/text/text.h"
#include "data/json_cursor.h"
#include "data/rows/row_grammar.h"
#include "data/rows/row_options.h"
#include "data/source/byte_source.h"
#include "data/squad.h"

namespace finetune {
namespace {

constexpr std::string_view kJsonSuffixes[] = {".json", ".jsonl", ".ndjson"};

// Returns whether a table's header has the columns of questions and answers.
bool is_header_of_questions(std::string_view text) {
  const std::string_view line = text.substr(0, text.find_first_of("\r\n"));
  const auto delimiter = detect_delimiter(line, true);
  if (line.empty() || !delimiter) return false;
  TextArena arena;
  Values names;
  if (scan_csv(line, true, *delimiter, names, arena).state != RowScan::State::row) return false;
  const auto has = [&](std::string_view wanted) {
    return std::any_of(names.begin(), names.end(),
                       [&](std::string_view name) { return trim(name) == wanted; });
  };
  return has("question") && has("context") && (has("answers") || has("answer_text"));
}

// Keys of articles, paragraphs and flat rows.
bool is_key_of_questions(std::string_view key) {
  return key == "paragraphs" || key == "qas" || key == "context" || key == "question";
}

// Looks at the first element of the array "data" for questions; an empty array counts as questions.
void look_at_data(JsonCursor& cursor, bool& holds_questions) {
  bool is_first = true;
  holds_questions = true;
  cursor.array([&] {
    if (!is_first) return cursor.skip_value();
    is_first = false;
    holds_questions = cursor.peek() == '{';
    if (!holds_questions) return cursor.skip_value();
    bool has_key = false;
    cursor.object([&](const JsonString& key) {
      has_key |= is_key_of_questions(key.raw);
      cursor.skip_value();
    });
    holds_questions = has_key;
  });
}

}  // namespace

bool is_table(const std::filesystem::path& name, std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || text[begin] == '{' || text[begin] == '[') return false;
  const std::string path = unpacked_name(name).string();
  return std::none_of(
      std::begin(kJsonSuffixes), std::end(kJsonSuffixes),
      [&](std::string_view suffix) { return ends_with_ignoring_case(path, suffix); });
}

bool looks_like_squad(const InputFile& file) {
  if (is_pipe(file.content)) return false;
  require_readable(file.content);
  const std::string beginning = beginning_of_text(file, 1 << 20);
  std::string_view text = beginning;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (is_table(file.name, text)) return is_header_of_questions(text);
  bool wrapper = false, context = false, question = false;
  JsonCursor cursor(text);
  try {
    cursor.take('[');
    cursor.object([&](const JsonString& key) {
      context |= key.raw == "context" || key.raw == "paragraphs";
      question |= key.raw == "question" || key.raw == "qas" || key.raw == "paragraphs";
      if (key.raw == "data" && cursor.peek() == '[')
        look_at_data(cursor, wrapper);
      else
        cursor.skip_value();
    });
  } catch (const JsonFault&) {  // not JSON, or cut off after the first megabyte
  }
  return wrapper || (context && question);
}

}  // namespace finetune

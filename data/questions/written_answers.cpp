// Reads answers as SQuAD, Hugging Face, pandas and people write them.
#include "data/questions/written_answers.h"

#include <cmath>
#include <iterator>
#include <utility>

#include "core/text/text.h"

namespace finetune {
namespace {

// Calls read() for each element of an array, or once for a single value.
template <typename Read>
void one_or_more(JsonCursor& cursor, Read&& read) {
  if (cursor.peek() == '[')
    cursor.array(read);
  else
    read();
}

// Reads {"text": ..., "answer_start": ...}, each of them one value or a list.
std::vector<WrittenAnswer> read_object(JsonCursor& cursor) {
  std::vector<WrittenAnswer> answers;
  std::vector<int64_t> starts;
  bool has_text = false;
  cursor.object([&](const JsonString& key) {
    if (key.raw == "text") {
      has_text = true;
      one_or_more(cursor, [&] { answers.push_back({read_text_value(cursor)}); });
    } else if (key.raw == "answer_start") {
      one_or_more(cursor, [&] { starts.push_back(read_answer_start(cursor)); });
    } else {
      cursor.skip_value();
    }
  });
  if (!has_text) cursor.fail("an answer without 'text'");
  if (starts.empty()) return answers;
  if (starts.size() != answers.size()) {
    cursor.fail(concat(answers.size(), " answer texts but ", starts.size(), " answer_start"));
  }
  for (size_t i = 0; i < starts.size(); ++i) {
    answers[i].start = starts[i];
    answers[i].has_start = true;
  }
  return answers;
}

}  // namespace

std::vector<WrittenAnswer> read_answers(JsonCursor& cursor) {
  std::vector<WrittenAnswer> answers;
  one_or_more(cursor, [&] {
    if (cursor.peek() != '{') {
      // A text that occurs exactly once in its context needs no answer_start.
      answers.push_back({read_text_value(cursor), -1, true});
      return;
    }
    std::vector<WrittenAnswer> more = read_object(cursor);
    answers.insert(answers.end(), std::make_move_iterator(more.begin()),
                   std::make_move_iterator(more.end()));
  });
  return answers;
}

std::string read_text_value(JsonCursor& cursor) {
  const char first = cursor.peek();
  if (first == '"') return text_of(cursor.string());
  const bool is_number = first == '-' || (first >= '0' && first <= '9');
  if (!is_number && first != 'n') cursor.expect('"', "a string");
  const std::string_view written = cursor.scalar();
  return is_number ? std::string(written) : std::string();
}

int64_t read_answer_start(JsonCursor& cursor) {
  const bool is_quoted = cursor.peek() == '"';
  const size_t at = cursor.position();
  const std::string written = is_quoted ? text_of(cursor.string()) : std::string(cursor.scalar());
  if (const auto start = parse_answer_start(written == "null" ? "" : written)) return *start;
  throw JsonFault{at, concat("answer_start is a whole number, not ", in_quotes(written))};
}

std::optional<bool> read_flag(JsonCursor& cursor) {
  const bool is_quoted = cursor.peek() == '"';
  const size_t at = cursor.position();
  const std::string written = is_quoted ? text_of(cursor.string()) : std::string(cursor.scalar());
  if (written == "null") return std::nullopt;
  if (written == "true" || written == "True" || written == "1") return true;
  if (written == "false" || written == "False" || written == "0") return false;
  throw JsonFault{at, concat("is true or false, not ", in_quotes(written))};
}

std::optional<int64_t> parse_answer_start(std::string_view text) {
  text = trim(text);
  if (text.empty()) return -1;
  if (const auto number = parse_int(text)) return number;
  constexpr double kMost = 1e15;
  const auto number = parse_double(text);
  const bool is_whole = number && std::abs(*number) < kMost && std::floor(*number) == *number;
  return is_whole ? std::optional(int64_t(*number)) : std::nullopt;
}

}  // namespace finetune

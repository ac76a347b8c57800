// Reads the answers of a question as JSON files write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/json_cursor.h"

namespace finetune {

struct WrittenAnswer {
  std::string text;
  int64_t start = -1;  // code points; -1: not in the file
  bool has_start = false;
};

// Reads a list of answers, or one answer. An answer is {"text": t, "answer_start": n} or a text
// alone; {"text": [t, ...], "answer_start": [n, ...]} are several. JsonFault for anything else.
std::vector<WrittenAnswer> read_answers(JsonCursor& cursor);

// Reads a string or a number as text, and null as an empty one. JsonFault for anything else.
std::string read_text_value(JsonCursor& cursor);

// Reads a number, digits in quotes, or null (-1). JsonFault for anything else.
int64_t read_answer_start(JsonCursor& cursor);

// Reads true or false, or what other programs write for them: 1 and 0, or words in quotes. Returns
// nothing for null. JsonFault for anything else.
std::optional<bool> read_flag(JsonCursor& cursor);

// Parses a number of code points: "4", or "4.0" as pandas writes it. An empty text is -1. Returns
// nothing for anything else.
std::optional<int64_t> parse_answer_start(std::string_view text);

}  // namespace finetune

// Finds the text of an answer in its context. Runs of white space are equal to each other here, and
// white space around the text does not count.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace finetune {

// Bytes [begin, end) of the context.
struct AnswerPlace {
  int64_t begin = -1;
  int64_t end = -1;
};

// True if `text` holds nothing but white space.
bool is_blank(std::string_view text);

// The answer at code point `start` of the context, or nothing if other text stands there.
std::optional<AnswerPlace> place_at(std::string_view context, std::string_view text, int64_t start);

// The only place where the text occurs, or nothing if it occurs nowhere or more than once.
std::optional<AnswerPlace> only_place(std::string_view context, std::string_view text);

}  // namespace finetune

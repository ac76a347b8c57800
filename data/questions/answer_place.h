// Finds the text of an answer in its context. All runs of white space are equal, and white space
// around the text is ignored.
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

// Returns whether `text` holds only white space.
bool is_blank(std::string_view text);

// Returns the answer at code point `start` of the context, or nothing if other text is there.
std::optional<AnswerPlace> place_at(std::string_view context, std::string_view text, int64_t start);

// Returns the only occurrence of the text, or nothing if it occurs never or more than once.
std::optional<AnswerPlace> only_place(std::string_view context, std::string_view text);

}  // namespace finetune

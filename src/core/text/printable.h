// Text of files and of users on its way to a terminal, a log or a message.
#pragma once

#include <string>
#include <string_view>

namespace finetune {

// `text` with whatever a terminal would obey, or would hide, written out as \n, \t, \r, \x1b or
// \u202e: control bytes, those of Unicode (U+0080 to U+009F), bytes that are not UTF-8, separators
// of lines and paragraphs, marks of writing direction. Of a longer text its first `limit` bytes and
// "…"; no character is cut.
std::string printable(std::string_view text, size_t limit = std::string_view::npos);

// The same for a message as a whole, which says its file first and its advice last: of one that is
// longer than any should be the middle is left out. `most` is of the bytes that come out.
std::string printable_message(std::string_view text, size_t most = 1000);

// JSON text with the same characters inside its strings as escapes: its values are what they were.
std::string printable_json(std::string_view json);

}  // namespace finetune

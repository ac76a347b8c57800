// Makes text of files and users safe for a terminal, a log, a message, HTML or XML.
#pragma once

#include <string>
#include <string_view>

namespace finetune {

// Escapes everything in `text` that could control a terminal or be invisible, such as \n, \t, \r,
// \x1b or \u202e: control bytes, control characters (U+0080 to U+009F), bytes that are
// not UTF-8, line and paragraph separators, direction marks. A longer text is cut to `limit` bytes
// and "…", without cutting a character.
std::string printable(std::string_view text, size_t limit = std::string_view::npos);

// The same for a whole message, which is cut to `most` bytes (escapes included) in the middle,
// because it begins with the file's name and ends with advice.
std::string printable_message(std::string_view text, size_t most = 1000);

// JSON text with these characters escaped inside its strings; the values are unchanged.
std::string printable_json(std::string_view json);

// Valid UTF-8 filled with blanks up to `width` characters, on its left if `right`.
std::string padded(const std::string& text, size_t width, bool right = false);

// For HTML and XML: printable(text, limit), escaped for use between tags or in a quoted attribute.
// The result contains no markup and no forbidden character.
std::string markup_escaped(std::string_view text, size_t limit = std::string_view::npos);

}  // namespace finetune

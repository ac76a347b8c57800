// Escapes text for HTML and XML.
#pragma once

#include <string>
#include <string_view>

namespace finetune {

// Returns printable(text), of a longer text its first `limit` bytes, escaped for use between tags
// or in a quoted attribute. The result contains no markup and no forbidden character.
std::string markup_escaped(std::string_view text, size_t limit = std::string_view::npos);

}  // namespace finetune

// Text in HTML and XML.
#pragma once

#include <string>
#include <string_view>

namespace finetune {

// What printable() shows of `text`, of a longer one of its first `limit` bytes, for a place between
// tags or in a quoted attribute. It is never markup, and no character of it is forbidden there.
std::string markup_escaped(std::string_view text, size_t limit = std::string_view::npos);

}  // namespace finetune

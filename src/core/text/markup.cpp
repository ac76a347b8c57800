// Escapes the special characters of HTML and XML.
#include "core/text/markup.h"

#include "core/text/printable.h"

namespace finetune {

std::string markup_escaped(std::string_view text, size_t limit) {
  std::string out;
  for (char c : printable(text, limit)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace finetune

// Decodes and writes the escapes of quoted strings.
#include "core/text/quoted_string.h"

#include "core/text/text.h"
#include "core/text/utf8.h"

namespace finetune {
namespace {

// Every function returns nothing if the text is not a string.
class StringReader {
 public:
  StringReader(std::string_view text, size_t& at) : text_(text), at_(at) {}

  std::optional<std::string> read() {
    const char quote = take();
    std::string out;
    while (at_ < text_.size()) {
      const char c = take();
      if (c == quote) return out;
      if (c != '\\') {
        out += c;
      } else if (!escape(out)) {
        return std::nullopt;
      }
    }
    return std::nullopt;
  }

 private:
  char take() {
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    at_ += at_ < text_.size();
    return c;
  }

  bool escape(std::string& out) {
    constexpr std::string_view kNames = "\\'\"/ntrbf", kMeanings = "\\'\"/\n\t\r\b\f";
    const char c = take();
    if (const size_t i = kNames.find(c); i != std::string_view::npos) {
      out += kMeanings[i];
      return true;
    }
    const int digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    std::optional<char32_t> code = digits > 0 ? hexadecimal(digits) : std::nullopt;
    if (code && *code >= 0xD800 && *code < 0xDC00 && take() == '\\' && take() == 'u') {
      const std::optional<char32_t> low = hexadecimal(4);
      code = low && *low >= 0xDC00 && *low < 0xE000
                 ? std::optional(0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00))
                 : std::nullopt;
    }
    if (!code || *code == 0 || *code > 0x10FFFF || (*code >= 0xD800 && *code < 0xE000))
      return false;
    utf8::append(*code, out);
    return true;
  }

  std::optional<char32_t> hexadecimal(int digits) {
    char32_t code = 0;
    for (int i = 0; i < digits; ++i) {
      constexpr std::string_view kDigits = "0123456789abcdef";
      const char c = take();
      const char lower = c >= 'A' && c <= 'F' ? char(c - 'A' + 'a') : c;
      const size_t value = kDigits.find(lower);
      if (value == std::string_view::npos) return std::nullopt;
      code = code << 4 | char32_t(value);
    }
    return code;
  }

  std::string_view text_;
  size_t& at_;
};

}  // namespace

std::optional<std::string> read_quoted(std::string_view text, size_t& at) {
  return StringReader(text, at).read();
}

std::string double_quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    unsigned char u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (c == '\r')
      out += "\\r";
    else if (u < 0x20 || u == 0x7F) {
      constexpr char digits[] = "0123456789abcdef";
      out += concat("\\u00", digits[u >> 4], digits[u & 15]);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace finetune

// Reads lists of strings and numbers in the notations of JSON and Python.
#include "tasks/labels/label_list.h"

#include <algorithm>

#include "core/text/quoted_string.h"
#include "core/text/text.h"

namespace finetune {
namespace {

// Reads the text in one pass. Each function returns nothing if the text is not a list.
class ListReader {
 public:
  explicit ListReader(std::string_view text) : text_(text) {}

  std::optional<std::vector<std::string>> read() {
    const char open = take();
    const char close = open == '[' ? ']' : open == '(' ? ')' : open == '{' ? '}' : '\0';
    if (close == '\0') return std::nullopt;
    std::vector<std::string> names;
    for (;;) {
      skip_space();
      if (peek() == close) break;
      const bool is_quoted = peek() == '"' || peek() == '\'';
      // In other brackets than a list's, numbers may mean anything.
      if (!is_quoted && open != '[') return std::nullopt;
      const std::optional<std::string> name = is_quoted ? read_quoted(text_, at_) : number();
      if (!name) return std::nullopt;
      const std::string_view trimmed = trim(*name);
      if (!trimmed.empty()) names.emplace_back(trimmed);
      const size_t before = at_;
      skip_space();
      if (peek() == ',') {
        ++at_;
      } else if (peek() != close && at_ == before) {  // numpy separates by blanks
        return std::nullopt;
      }
    }
    ++at_;
    if (at_ != text_.size() || (open == '{' && names.empty())) return std::nullopt;
    return names;
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  char take() {
    const char c = peek();
    at_ += at_ < text_.size();
    return c;
  }
  void skip_space() {
    while (peek() == ' ' || (peek() >= '\t' && peek() <= '\r')) ++at_;
  }

  // A number as it is written; "" for a missing value.
  std::optional<std::string> number() {
    const size_t end = std::min(text_.find_first_of(", \t\r\n]", at_), text_.size());
    const std::string_view word = text_.substr(at_, end - at_);
    at_ = end;
    if (word == "null" || word == "None" || word == "nan" || word == "NaN") return "";
    if (word == "true" || word == "false" || parse_double(word)) return std::string(word);
    return std::nullopt;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::optional<std::vector<std::string>> label_list(std::string_view value) {
  return ListReader(trim(value)).read();
}

}  // namespace finetune

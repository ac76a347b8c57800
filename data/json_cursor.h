// A strict JSON reader (RFC 8259) over text in memory. It keeps the byte offset of every value, so
// values can be taken as written and errors name their place. It reads users' data files once,
// front to back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace finetune {

// What is wrong, and at which byte of the text. Readers in data/ turn it into an Error.
struct JsonFault {
  size_t at = 0;
  std::string what;
};

// A string as written between its quotes, starting at byte `at` of the text. `escaped`: it contains
// a backslash.
struct JsonString {
  std::string_view raw;
  size_t at = 0;
  bool escaped = false;
};

// The text must be valid UTF-8 (not checked here). Every function throws JsonFault.
class JsonCursor {
 public:
  explicit JsonCursor(std::string_view text) : text_(text) {}

  size_t position() const { return at_; }
  bool at_end();      // only white space is left
  char peek();        // the first byte of the next token; throws at the end of the text
  bool take(char c);  // skips `c` if it is next
  void expect(char c, const char* what);

  JsonString string();
  std::string_view scalar();  // number, true, false or null, as written
  void skip_value();
  std::string_view text_from(size_t begin) const { return text_.substr(begin, at_ - begin); }

  // Call member(key) for each member of an object, or element() for each element of an array. The
  // callback reads the value.
  template <typename Member>
  void object(Member&& member) {
    expect('{', "an object");
    if (take('}')) return;
    do {
      JsonString key = string();
      expect(':', "':'");
      member(key);
    } while (take(','));
    expect('}', "',' or '}'");
  }
  template <typename Element>
  void array(Element&& element) {
    expect('[', "an array");
    if (take(']')) return;
    do {
      element();
    } while (take(','));
    expect(']', "',' or ']'");
  }

  [[noreturn]] void fail(std::string what) const { throw JsonFault{at_, std::move(what)}; }

 private:
  [[noreturn]] void fail_at_end();
  std::string next_character() const;  // for messages
  void skip_space();
  void skip_nested(int depth);

  std::string_view text_;
  size_t at_ = 0;
};

// Appends the unescaped string. A lone surrogate is a fault, since UTF-8 cannot encode it.
void append_text(const JsonString& string, std::string& out);
std::string text_of(const JsonString& string);

}  // namespace finetune

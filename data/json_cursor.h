// A strict JSON reader (RFC 8259) over text in memory that keeps the place of every byte.
// Values can be taken as written, and an error knows where it is. For the data files of users,
// which are read once, front to back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace finetune {

// What is wrong and at which byte of the text. Never leaves data/: readers turn it into an Error.
struct JsonFault {
  size_t at = 0;
  std::string what;
};

// A string as written between its quotes, which begins at byte `at` of the text; `escaped` if it
// holds a backslash.
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
  bool at_end();      // nothing but white space is left
  char peek();        // the first byte of the next token; a fault at the end of the text
  bool take(char c);  // steps over `c` if it is next
  void expect(char c, const char* what);

  JsonString string();
  std::string_view scalar();  // number, true, false or null, as written
  void skip_value();
  std::string_view text_from(size_t begin) const { return text_.substr(begin, at_ - begin); }

  // member(key) for each member of an object, element() for each of an array; they read the value.
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

// Appends the meaning of a string. A lone surrogate, which UTF-8 cannot express, is a fault.
void append_text(const JsonString& string, std::string& out);
std::string text_of(const JsonString& string);

}  // namespace finetune

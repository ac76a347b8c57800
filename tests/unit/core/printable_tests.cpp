// Which characters may be printed, and how the others are escaped.
#include <doctest/doctest.h>

#include "core/text/printable.h"
#include "core/text/text.h"

using namespace finetune;

TEST_CASE("bytes that a terminal would obey are escaped") {
  CHECK(printable("plain, with 'quotes' and \\ and Zürich, 東京, 🙂") ==
        "plain, with 'quotes' and \\ and Zürich, 東京, 🙂");
  CHECK(printable("a\nb\tc\rd") == "a\\nb\\tc\\rd");
  CHECK(printable("\x1b[31mred\x1b[0m\a\x7f") == "\\x1b[31mred\\x1b[0m\\x07\\x7f");
  CHECK(printable(std::string_view("\0x", 2)) == "\\x00x");
  CHECK(printable("\xC2\x9B"
                  "31m\xC2\x85") == "\\u009b31m\\u0085");  // CSI and next line, as UTF-8
  CHECK(printable("\xC2\xA0") == "\xC2\xA0");  // the first character behind the controls
  CHECK(printable("\xE9\xC3\xA9\xC3") == "\\xe9é\\xc3");
  CHECK(printable("\x9b") == "\\x9b");  // CSI as one byte
}

TEST_CASE("characters that hide or reorder text are escaped") {
  for (const char* mark : {"061c", "200e", "200f", "2028", "2029", "202a", "202b", "202c", "202d",
                           "202e", "2066", "2067", "2068", "2069", "fffe", "ffff"}) {
    const unsigned code = unsigned(std::stoul(mark, nullptr, 16));
    std::string text = code < 0x800
                           ? std::string{char(0xC0 | code >> 6), char(0x80 | (code & 63))}
                           : std::string{char(0xE0 | code >> 12), char(0x80 | (code >> 6 & 63)),
                                         char(0x80 | (code & 63))};
    CAPTURE(mark);
    CHECK(printable(text) == concat("\\u", mark));
    CHECK(in_quotes(concat("a", text, "b")) == concat("'a\\u", mark, "b'"));
  }
  for (const char* neighbour :
       {"\xE2\x80\xA7", "\xE2\x80\xAF", "\xE2\x81\xA5", "\xE2\x81\xAA", "\xEF\xBF\xBD"}) {
    CHECK(printable(neighbour) == neighbour);
  }
}

TEST_CASE("a limit cuts no character") {
  CHECK(printable("abcdef", 3) == "abc…");
  CHECK(printable("abc", 3) == "abc");
  CHECK(printable("aéb", 2) == "a…");
  CHECK(printable("🙂🙂", 7) == "🙂…");
  CHECK(printable("\x80\x80\x80\x80\x80\x80", 5) == "\\x80\\x80…");  // no character at all
  CHECK(printable("", 0) == "");
}

TEST_CASE("of a long message the beginning and the end are left") {
  const std::string message = concat("file.bin: ", std::string(100'000, 'x'), "; do this");
  const std::string shown = printable_message(message);
  CHECK(shown.size() <= 1000);
  CHECK(shown.starts_with("file.bin: xxx"));
  CHECK(shown.ends_with("xxx; do this"));
  CHECK(printable_message("short\n") == "short\\n");
  CHECK(printable_message(std::string(1000, 'x')) == std::string(1000, 'x'));
  // Escapes turn one byte into four.
  CHECK(printable_message(std::string(900, '\x1b')).size() <= 1000);
  std::string wide;
  for (int i = 0; i < 3000; ++i) wide += "é";
  CHECK(invalid_utf8(printable_message(wide)) == std::string::npos);
}

TEST_CASE("JSON stays JSON") {
  CHECK(printable_json("{\n  \"a\": \"\\u001b é\"\n}") == "{\n  \"a\": \"\\u001b é\"\n}");
  const std::string right_to_left =
      concat("\xE2\x80", "\xAE");  // U+202E, in two parts for the lint
  CHECK(printable_json(concat("[\"\x7f\xC2\x9B", right_to_left, "\"]")) ==
        "[\"\\u007f\\u009b\\u202e\"]");
  CHECK(printable_json("\"\xE2\x80") == "\"\xE2\x80");  // cut off
}

TEST_CASE("no suggestion is made for names of any length") {
  const std::string lengthy(200'000, 'a');  // a comparison would take minutes
  CHECK(!closest_match(lengthy, {lengthy + "b"}));
  CHECK(closest_match("labels", {"label", "text"}) == "label");
}

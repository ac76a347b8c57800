// Numbers, splitting, closest match and UTF-8 checks of core/text/text.h.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "core/text/counted.h"
#include "core/text/quoted_string.h"
#include "core/text/text.h"

using namespace finetune;

TEST_CASE("numbers are written so that they read back") {
  for (double value : {0.0, 0.1, 1.0 / 3, 1e-300, 1e300, -2.5, 5e-324, 123456789.125,
                       std::numeric_limits<double>::max()}) {
    CHECK(parse_double(format_number(value)) == value);
  }
  CHECK(format_number(0.1f) == "0.1");
  CHECK(format_number(0.1) == "0.1");
  CHECK(format_number(std::nan("")) == "nan");
  CHECK(format_number(-HUGE_VAL) == "-inf");
  CHECK(format_fixed(0.12345, 2) == "0.12");
  CHECK(format_fixed(-1.0, 3) == "-1.000");
  CHECK(format_measure(12.34567) == "12.3457");
  CHECK(format_measure(0) == "0.0000");
  CHECK(format_measure(0.0001234567) == "0.0001235");
  CHECK(format_measure(-2.89e-05) == "-2.89e-05");
  CHECK(format_measure(std::nan("")) == "nan");
  CHECK(format_rate(1000, "rows", 0.5) == "1,000 rows in 0.50 s (2000 a second)");
  CHECK(format_rate(3, "rows", 0) == "3 rows in 0.00 s");
}

TEST_CASE("only whole numbers parse") {
  CHECK(parse_double("+1.5e3") == 1500.0);
  CHECK_FALSE(parse_double("1.5x"));
  CHECK_FALSE(parse_double(""));
  CHECK_FALSE(parse_double(" 1"));
  CHECK_FALSE(parse_double("1,5"));
  CHECK(parse_int("-42") == -42);
  CHECK_FALSE(parse_int("42.0"));
  CHECK_FALSE(parse_int("9223372036854775808"));
}

TEST_CASE("counts go with their nouns") {
  CHECK(counted(1, "row") == "1 row");
  CHECK(counted(0, "row") == "0 rows");
  CHECK(counted(size_t{2}, "text is empty", "texts are empty") == "2 texts are empty");
  CHECK(counted(1, "text is empty", "texts are empty") == "1 text is empty");
  CHECK(format_rate(1, "questions", 0.5) == "1 question in 0.50 s (2 a second)");
  CHECK(format_rate(3, "rows", 0) == "3 rows in 0.00 s");
}

TEST_CASE("concat, split, trim, join") {
  CHECK(concat("a", 1, 'b', -2.5, true, std::string("c"), uint64_t{18446744073709551615u}) ==
        "a1b-2.5truec18446744073709551615");
  CHECK(split("a,,b,", ',') == std::vector<std::string_view>{"a", "", "b", ""});
  CHECK(split("", ',') == std::vector<std::string_view>{""});
  CHECK(trim(" \t a b \r\n") == "a b");
  CHECK(trim(" \n") == "");
  CHECK(join({"a", "b", "c"}, ", ") == "a, b, c");
  CHECK(join({}, ", ") == "");
  CHECK(ends_with_ignoring_case("Data.CSV", ".csv"));
  CHECK_FALSE(ends_with_ignoring_case("csv", ".csv"));
}

TEST_CASE("closest_match finds typos and nothing else") {
  CHECK(closest_match("catgory", {"text", "category"}) == "category");
  CHECK(closest_match("labels", {"text", "label"}) == "label");
  CHECK_FALSE(closest_match("zebra", {"text", "label"}));
  CHECK_FALSE(closest_match("label", {}));
}

TEST_CASE("invalid_utf8 gives the first bad byte") {
  auto npos = std::string_view::npos;
  CHECK(invalid_utf8("") == npos);
  CHECK(invalid_utf8("plain") == npos);
  CHECK(invalid_utf8("aé€\U0001F600") == npos);
  CHECK(invalid_utf8("\xED\x9F\xBF \xEE\x80\x80 \xF4\x8F\xBF\xBF") == npos);
  CHECK(invalid_utf8("ab\xE9") == 2);            // Latin-1
  CHECK(invalid_utf8("a\x80") == 1);             // continuation without a lead
  CHECK(invalid_utf8("\xC0\xAF") == 0);          // overlong
  CHECK(invalid_utf8("\xE0\x9F\xBF") == 0);      // overlong
  CHECK(invalid_utf8("x\xED\xA0\x80") == 1);     // surrogate
  CHECK(invalid_utf8("\xF4\x90\x80\x80") == 0);  // past U+10FFFF
  CHECK(invalid_utf8("\xF0\x8F\xBF\xBF") == 0);  // overlong
  CHECK(invalid_utf8("abc\xE2\x82") == 3);       // cut short
  CHECK(count_code_points("aé€\U0001F600") == 4);
}

TEST_CASE("quoted is one short printable line") {
  CHECK(in_quotes("a\nb\t\x01") == "'a\\nb\\t\\x01'");
  CHECK(in_quotes("abcdef", 3) == "'abc…'");
  CHECK(in_quotes("aéb", 2) == "'a…'");  // never cuts a character
  CHECK(in_quotes("a\xE9\xC3\xA9\xC3") == "'a\\xe9é\\xc3'");
  CHECK(in_quotes("\xE9\xE9") == "'\\xe9\\xe9'");
  CHECK(in_quotes("") == "''");
}

TEST_CASE("strings in quotes, as JSON, Python and TOML write them") {
  constexpr std::string_view list = R"(['a"\x41\u00e9\ud83d\ude00\n', 1])";
  size_t at = 1;
  CHECK(read_quoted(list, at) == "a\"A\u00e9\U0001F600\n");
  CHECK(list.substr(at) == ", 1]");
  for (const char* bad : {"'a", "'\\q'", "'\\ud83d'", "'\\u0000'", "'\\U00110000'", "'\\x4'"}) {
    at = 0;
    CHECK(read_quoted(bad, at) == std::nullopt);
  }
  const std::string text = "a'\"\\\t\x01\u00e9";
  CHECK(double_quoted(text) == "\"a'\\\"\\\\\\t\\u0001\u00e9\"");
  at = 0;
  CHECK(read_quoted(double_quoted(text), at) == text);
}

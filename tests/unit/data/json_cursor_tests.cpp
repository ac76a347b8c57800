// The JSON reader against RFC 8259 and against simdjson.
#include <doctest/doctest.h>
#include <simdjson.h>

#include <string>
#include <vector>

#include "core/numeric/philox.h"
#include "core/text/text.h"
#include "data/json_cursor.h"

using namespace finetune;

namespace {

// Whether the whole text is one JSON value.
bool accepts(std::string_view text) {
  try {
    JsonCursor cursor(text);
    cursor.skip_value();
    return cursor.at_end();
  } catch (const JsonFault& fault) {
    CHECK(fault.at <= text.size());
    return false;
  }
}

std::string meaning(std::string_view text) {
  JsonCursor cursor(text);
  return text_of(cursor.string());
}

}  // namespace

TEST_CASE("values as JSON defines them") {
  for (const char* good :
       {"0", "-0", "1.5e+10", "-12.25E-3", "true", "false", "null", "\"\"", " [ ] ", "{}",
        "[1,[2,{\"a\":[]}]]", "{\"a\" : 1 , \"b\" : \"\\u00e9\"}"}) {
    CAPTURE(good);
    CHECK(accepts(good));
  }
  for (const char* bad :
       {"",         " ",          "01",          "1.",   ".5",   "+1",       "1e",
        "-",        "NaN",        "Infinity",    "tru",  "True", "nul",      "\"",
        "\"a\nb\"", "\"\\x\"",    "\"\\u12g4\"", "[1,]", "[,1]", "{\"a\"}",  "{\"a\":}",
        "{a:1}",    "{\"a\":1,}", "[1 2]",       "1 2",  "]",    "{\"a\":1]"}) {
    CAPTURE(bad);
    CHECK_FALSE(accepts(bad));
  }
  CHECK(accepts(std::string(500, '[') + std::string(500, ']')));
  CHECK_FALSE(accepts(std::string(1000000, '[')));  // refused without a stack overflow
}

TEST_CASE("strings are unescaped") {
  CHECK(meaning(R"("a\"\\\/\b\f\n\r\t")") == "a\"\\/\b\f\n\r\t");
  CHECK(meaning(R"("\u0041\u00e9\u20AC\uD83D\uDE00z")") == "Aé€\U0001F600z");
  CHECK(meaning("\"\\u0000\"") == std::string(1, '\0'));
  for (const char* lone : {R"("\ud83d")", R"("\ud83dx")", R"("\ud83d\u0041")", R"("\ude00")"}) {
    CAPTURE(lone);
    CHECK_THROWS_AS(meaning(lone), JsonFault);
  }
}

TEST_CASE("the same texts are JSON as for simdjson") {
  const std::string seed =
      R"({"a":[1,-2.5e3,true,null,"x\né\u20ac"],"b":{"c":"\"q\"","d":[],"e":{}},"f":false})";
  constexpr std::string_view bytes = "{}[],:\"\\0123-+.eEtrufalsn \n\tx";
  const PhiloxKey key{20, 26};
  simdjson::dom::parser parser;
  int accepted = 0, different = 0;
  for (uint32_t round = 0; round < 20000; ++round) {
    std::string text = seed;
    PhiloxBlock random = philox(key, {round, 0, 0, 0});
    for (uint32_t i = 0; i < 1 + random[0] % 3; ++i) {
      PhiloxBlock edit = philox(key, {round, 1 + i, 0, 0});
      size_t at = edit[0] % text.size();
      char byte = bytes[edit[1] % bytes.size()];
      if (edit[2] % 3 == 0)
        text[at] = byte;
      else if (edit[2] % 3 == 1)
        text.insert(at, 1, byte);
      else
        text.erase(at, 1);
    }
    if (invalid_utf8(text) != std::string::npos) continue;
    bool ours = accepts(text);
    bool theirs = parser.parse(text).error() == simdjson::SUCCESS;
    accepted += ours;
    different += ours != theirs;
    if (ours != theirs) MESSAGE(text);
  }
  CHECK(different == 0);
  CHECK(accepted > 1000);
}

// JSON: long integers become doubles; values are put together, parsed and edited.
#include <doctest/doctest.h>

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/text/json_text.h"
#include "core/text/json_value.h"

using namespace finetune;

TEST_CASE("long integers get an exponent, nothing else changes") {
  const std::string nines(19, '9'), long_one = "1" + nines;
  auto changed = with_long_integers_as_doubles;
  CHECK(changed("{\"a\": " + long_one + ", \"b\":[-" + long_one + "]}") ==
        "{\"a\": " + long_one + "e0, \"b\":[-" + long_one + "e0]}");
  CHECK(changed(long_one) == long_one + "e0");
  CHECK(changed("-9223372036854775809") == "-9223372036854775809e0");
  const std::string unchanged[] = {"",
                                   nines,
                                   "-9223372036854775808",
                                   long_one + ".5",
                                   long_one + "e2",
                                   "0." + long_one,
                                   "\"" + long_one + "\"",
                                   "\"\\\"" + long_one + "\"",
                                   "[true, null, \"x\", 1.5e-3]",
                                   "\"" + long_one,
                                   "\"\\"};
  for (const std::string& same : unchanged) CHECK(changed(same) == same);
}

TEST_CASE("JSON is put together of values") {
  CHECK(JsonValue().text() == "null");
  CHECK(JsonValue(true).text() == "true");
  CHECK(JsonValue(uint64_t{1} << 63).text() == "9223372036854775808");
  CHECK(JsonValue(1.0).text() == "1.0");
  CHECK(JsonValue(1e-5).text() == "1e-05");
  CHECK(JsonValue(std::numeric_limits<double>::quiet_NaN()).text() == "null");
  CHECK(JsonValue(std::optional<double>()).text() == "null");
  CHECK(JsonValue("a\"\n\xff").text() == "\"a\\\"\\n\xef\xbf\xbd\"");
  CHECK(JsonValue(std::vector<int64_t>{3, 4}).text() == "[3,4]");
  CHECK(JsonArray().text() == "[]");
  JsonObject object;
  CHECK(object.text() == "{}");
  object.add("a", JsonArray{1, "x"});
  object.add_all({});
  object.add_all({{"b", object}, {"c", false}});
  CHECK(object.text() == R"({"a":[1,"x"],"b":{"a":[1,"x"]},"c":false})");
  CHECK(JsonObject{{"a", JsonArray{1}}}.indented(1) == "{\n \"a\": [\n  1\n ]\n}");
}

TEST_CASE("numbers are written with a point or an exponent, and read back") {
  const auto text = [](double value) { return JsonValue(value).text(); };
  CHECK(text(-0.0) == "-0.0");
  CHECK(text(0.0001) == "0.0001");
  CHECK(text(123456789012345) == "123456789012345.0");
  CHECK(text(1e15) == "1e+15");
  CHECK(text(5e-324) == "5e-324");
  CHECK(JsonValue(5e-324).as<double>() == 5e-324);
  CHECK(text(0.1f) == "0.10000000149011612");
  // Not the shortest ones: sums of files that earlier versions have written are of these digits.
  CHECK(text(-0.3504939675331116) == "-0.35049396753311157");
  CHECK(text(1.5133756694760112e+15) == "1.5133756694760113e+15");
}

TEST_CASE("strings are escaped, and bytes that are not UTF-8 replaced") {
  const auto text = [](std::string_view value, bool ascii) {
    std::string out;
    append_json_string(value, out, ascii);
    return out;
  };
  CHECK(text("a\"\\/\b\f\n\r\t\x01\x1f", false) == R"("a\"\\/\b\f\n\r\t\u0001\u001f")");
  CHECK(text("\x7f é😀", false) == "\"\x7f é😀\"");
  CHECK(text("\x7f é😀", true) == R"("\u007f \u00e9\ud83d\ude00")");
  CHECK(text("\xed\xa0\x80 \xf0\x9f\x98", false) == "\"\ufffd\ufffd\ufffd \ufffd\"");
  CHECK(text("\xff", true) == R"("\ufffd")");
}

TEST_CASE("a parsed value gives what has the type asked for") {
  const JsonValue json = JsonValue::parse(
      R"({"a": {"b": [1, 2.5]}, "t": true, "n": null, "s": "é\u00e9", "big": 18446744073709551615,
          "minus": -3})");
  CHECK(json["a"]["b"].as<std::vector<double>>() == std::vector<double>{1, 2.5});
  CHECK(!json["a"]["b"].as<std::vector<int>>());
  CHECK(json["a"]["b"].items().size() == 2);
  CHECK(json["t"].as<bool>() == true);
  CHECK(!json["t"].as<int>());
  CHECK(!json["t"].as<double>());
  CHECK(json.contains("n"));
  CHECK(!json["n"].as<std::string>());
  CHECK(json["s"].as<std::string>() == "éé");
  CHECK(json["big"].as<uint64_t>() == UINT64_MAX);
  CHECK(!json["big"].as<int64_t>());
  CHECK(JsonValue::parse("18446744073709551616").as<double>() == 0x1p64);
  CHECK(json["minus"].as<int>() == -3);
  CHECK(!json["minus"].as<uint64_t>());
  CHECK(!json.contains("absent"));
  CHECK(!json["absent"]["deeper"].as<int>());
  CHECK(!json["s"].contains("x"));
}

TEST_CASE("of members with one name the last value counts, at the first place") {
  JsonValue json = JsonValue::parse(R"({"a": 1, "b": {"x": 1, "x": 2}, "a": 3.0})");
  CHECK(json.text() == R"({"a":3.0,"b":{"x":2}})");
  json.set("a", JsonArray());
  json.set("c", "new");
  json.erase("b");
  json.erase("absent");
  CHECK(json.text() == R"({"a":[],"c":"new"})");
  CHECK(json.indented(2) == "{\n  \"a\": [],\n  \"c\": \"new\"\n}");
}

TEST_CASE("what is not JSON is null") {
  const auto deep = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  CHECK(JsonValue::parse(deep(1000)).is_array());
  const std::string bad[] = {"",
                             " ",
                             "{",
                             "{} {}",
                             "[1,]",
                             "{\"a\" 1}",
                             "{'a': 1}",
                             "NaN",
                             "[-Infinity]",
                             "[1e999]",
                             "[01]",
                             "\"\xff\"",
                             "[\"\\ud800\"]",
                             "[\"\\udc00x\"]",
                             "\"a\nb\"",
                             "// x\n1",
                             deep(100'000),
                             "[" + std::string(400, '9') + "]"};
  for (const std::string& text : bad) {
    CAPTURE(text.substr(0, 20));
    CHECK(JsonValue::parse(text).text() == "null");
  }
}

// JSON text: long integers become doubles, and values are put together.
#include <doctest/doctest.h>

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/text/json_text.h"
#include "core/text/json_writer.h"

using namespace finetune;

TEST_CASE("long integers get an exponent, nothing else changes") {
  const std::string nines(19, '9'), long_one = "1" + nines;
  auto changed = with_long_integers_as_doubles;
  CHECK(changed("{\"a\": " + long_one + ", \"b\":[-" + long_one + "]}") ==
        "{\"a\": " + long_one + "e0, \"b\":[-" + long_one + "e0]}");
  CHECK(changed(long_one) == long_one + "e0");
  const std::string unchanged[] = {"",
                                   nines,
                                   "-" + nines,
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
  CHECK(JsonText().text() == "null");
  CHECK(JsonText(true).text() == "true");
  CHECK(JsonText(uint64_t{1} << 63).text() == "9223372036854775808");
  CHECK(JsonText(1.0).text() == "1.0");
  CHECK(JsonText(1e-5).text() == "1e-05");
  CHECK(JsonText(std::numeric_limits<double>::quiet_NaN()).text() == "null");
  CHECK(JsonText(std::optional<double>()).text() == "null");
  CHECK(JsonText("a\"\n\xff").text() == "\"a\\\"\\n\xef\xbf\xbd\"");
  CHECK(JsonText(std::vector<int64_t>{3, 4}).text() == "[3,4]");
  CHECK(JsonArray().text() == "[]");
  JsonObject object;
  CHECK(object.text() == "{}");
  object.add("a", JsonArray{1, "x"});
  object.add_all({});
  object.add_all({{"b", object}, {"c", false}});
  CHECK(object.text() == R"({"a":[1,"x"],"b":{"a":[1,"x"]},"c":false})");
  CHECK(JsonObject{{"a", JsonArray{1}}}.indented(1) == "{\n \"a\": [\n  1\n ]\n}");
}

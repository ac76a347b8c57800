// Long integers in JSON text become doubles; nothing else changes.
#include <doctest/doctest.h>

#include <string>

#include "core/text/json_text.h"

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

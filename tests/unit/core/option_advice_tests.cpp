// Advice names only options of the running command.
#include <doctest/doctest.h>

#include "core/option_advice.h"

using namespace finetune;

TEST_CASE("advice is left out if the command lacks one of its options") {
  CHECK(option_advice("; --any helps") == "; --any helps");
  set_command_options(std::vector<std::string>{"encoding", "skip-bad-rows"});
  CHECK(option_advice("; --skip-bad-rows drops such rows") == "; --skip-bad-rows drops such rows");
  CHECK(option_advice("; --skip-bad drops such rows").empty());
  CHECK(option_advice("give --encoding or (--delimiter)").empty());
  CHECK(option_advice("mend the row") == "mend the row");
  {
    const UnusedOptions unused({"encoding"});
    CHECK(option_advice("; --encoding").empty());
    CHECK(option_advice("; --skip-bad-rows") == "; --skip-bad-rows");
  }
  CHECK(option_advice("; --encoding") == "; --encoding");
  set_command_options(std::nullopt);
  CHECK(option_advice("; --any helps") == "; --any helps");
}

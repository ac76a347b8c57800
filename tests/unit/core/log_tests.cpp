// The parts of the progress line that a terminal has room for.
#include <doctest/doctest.h>

#include "core/log.h"

using namespace finetune;

TEST_CASE("parts of the highest rank are left out first, those of rank 0 never") {
  const std::vector<ProgressPart> parts = {
      {"step 1/9", 0}, {"loss 2", 2}, {"é/s", 3}, {"left 0:01", 1}};
  CHECK(fitting_parts(parts, 200) == "step 1/9  loss 2  é/s  left 0:01");
  CHECK(fitting_parts(parts, 32) == "step 1/9  loss 2  é/s  left 0:01");  // characters, not bytes
  CHECK(fitting_parts(parts, 31) == "step 1/9  loss 2  left 0:01");
  CHECK(fitting_parts(parts, 26) == "step 1/9  left 0:01");
  CHECK(fitting_parts(parts, 18) == "step 1/9");
  CHECK(fitting_parts(parts, 1) == "step 1/9");
  CHECK(fitting_parts({}, 1) == "");
}

// Checks that a config.json is refused, in one line that begins with its path.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "../contains.h"
#include "../error_line.h"
#include "model/config.h"

namespace finetune::test {

inline void check_refused(const std::string& json, const std::string& part) {
  std::string message = error_line(ExitCode::model, [&] { parse_config(json, "dir/config.json"); });
  INFO(json, " -> ", message);
  CHECK(message.find("dir/config.json: ") == 0);
  CHECK(contains(message, part));
}

}  // namespace finetune::test

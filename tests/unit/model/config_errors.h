// Checks that a config.json is refused, in one line that begins with its path.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "../contains.h"
#include "core/error.h"
#include "model/config.h"

namespace finetune::test {

// The message of the Error(model) that `run` throws.
template <typename Run>
std::string message_of(Run&& run) {
  try {
    run();
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::model);
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
    return error.what();
  }
  return "no error";
}

inline void check_refused(const std::string& json, const std::string& part) {
  std::string message = message_of([&] { parse_config(json, "dir/config.json"); });
  INFO(json, " -> ", message);
  CHECK(message.find("dir/config.json: ") == 0);
  CHECK(contains(message, part));
}

}  // namespace finetune::test

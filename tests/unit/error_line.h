// The error line that an action throws.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "core/error.h"

namespace finetune::test {

// The message of the Error that `action` throws, or "". It must have this code and be one line.
template <typename Action>
std::string error_line(ExitCode code, Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    CHECK(error.code() == code);
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
    return error.what();
  }
  return "";
}

}  // namespace finetune::test

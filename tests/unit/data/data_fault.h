// Shared by the tests of bad data.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "core/error.h"
#include "temporary_directory.h"

namespace finetune::test {

// The message of the Error(data) that `action` throws, with file names relative to the directory.
template <typename Action>
std::string data_fault(const TemporaryDirectory& directory, Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::data);
    std::string message = error.what();
    CHECK(message.find('\n') == std::string::npos);
    return directory.without_path(message);
  }
  return "no error";
}

}  // namespace finetune::test

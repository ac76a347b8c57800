// Shared by the tests of bad data.
#pragma once

#include <string>

#include "error_line.h"
#include "temporary_directory.h"

namespace finetune::test {

// The message of the Error(data) that `action` throws, with file names relative to the directory.
template <typename Action>
std::string data_fault(const TemporaryDirectory& directory, Action&& action) {
  return directory.without_path(error_line(ExitCode::data, action));
}

}  // namespace finetune::test

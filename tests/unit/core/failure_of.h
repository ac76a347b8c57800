// The error that an action throws, as text.
#pragma once

#include <string>

#include "core/error.h"

namespace finetune::test {

// "4: message" of the Error that `action` throws; the exit code comes first.
template <typename Action>
std::string failure_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return concat(int(error.code()), ": ", error.what());
  }
  return "no error";
}

}  // namespace finetune::test

// What an exception that is no Error says to the user, and with which exit code it ends a command.
#pragma once

#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.h"

namespace finetune {

// Why a process or a thread could not be started: "Resource temporarily unavailable (...)".
std::string start_failure(int error);

// action(); Error(device) "out of memory PLACE" where memory ran out in it. `place` says in which
// part of the work, and what helps there: "while the data are read; fewer rows need less".
template <typename Action>
decltype(auto) with_memory_advice(std::string_view place, Action&& action) {
  try {
    return std::forward<Action>(action)();
  } catch (const std::bad_alloc&) {
    throw device_error("out of memory ", place);
  } catch (const std::length_error&) {  // a size that no container can have
    throw device_error("out of memory ", place);
  }
}

// Error(device) where memory or threads ran out, with `advice` behind it ("; a smaller ..."), an
// Error as it is, Error(model) of the file system's, Error(internal) for all else.
Error error_of(const std::exception& failure, std::string_view advice = "");

}  // namespace finetune

// Converts an exception to an Error, which has the user's message and the exit code.
#pragma once

#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.h"

namespace finetune {

// Why a process or thread could not be started: "Resource temporarily unavailable (...)".
std::string start_failure(int error);

// Calls action(). If memory runs out, throws Error(device) "out of memory PLACE"; `place` says
// where and what helps: "while the data are read; fewer rows need less".
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

// Returns Error(device) if memory or threads ran out, with `advice` appended ("; a smaller ..."),
// an Error unchanged, Error(model) for the file system's exceptions, else Error(internal).
Error error_of(const std::exception& failure, std::string_view advice = "");

}  // namespace finetune

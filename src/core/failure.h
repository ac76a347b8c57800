// What an exception that is no Error says to the user, and with which exit code it ends a command.
#pragma once

#include <exception>
#include <string_view>

#include "core/error.h"

namespace finetune {

// Error(device) where memory or threads ran out, with `advice` behind it ("; a smaller ..."), an
// Error as it is, Error(model) of the file system's, Error(internal) for all else.
Error error_of(const std::exception& failure, std::string_view advice = "");

}  // namespace finetune

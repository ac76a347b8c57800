// The meanings of the exit codes, for --help and the manual page (docs/reference/files.md).
#pragma once

#include <array>
#include <string_view>

#include "core/error.h"

namespace finetune {

struct ExitCodeEntry {
  ExitCode code;
  std::string_view meaning;  // in a few words
};

inline constexpr std::array kExitCodes{
    ExitCodeEntry{ExitCode::done, "done"},
    ExitCodeEntry{ExitCode::usage, "usage"},
    ExitCodeEntry{ExitCode::data, "data"},
    ExitCodeEntry{ExitCode::model, "model or output"},
    ExitCodeEntry{ExitCode::device, "device or memory"},
    ExitCodeEntry{ExitCode::diverged, "diverged"},
    ExitCodeEntry{ExitCode::assertion, "a gate or a warning"},
    ExitCodeEntry{ExitCode::time_limit, "time limit"},
    ExitCodeEntry{ExitCode::checkpointed, "checkpointed on a signal"},
    ExitCodeEntry{ExitCode::interrupted, "interrupted"},
    ExitCodeEntry{ExitCode::internal, "internal"},
};

}  // namespace finetune

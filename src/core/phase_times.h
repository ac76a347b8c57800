// FINETUNE_TIMES=1: says on standard error how long after its start the program ended each phase.
#pragma once

#include <string_view>

namespace finetune {

// Prints "finetune: time 0.123 s: weights read" if the switch is set. Thread-safe. Costs nothing
// otherwise, but is meant for phases, not for loops.
void phase_ended(std::string_view phase);

}  // namespace finetune

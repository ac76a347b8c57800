// Prints when a phase of a command ended, and the memory so far.
#include "core/phase_times.h"

#include <cstdio>

#include "core/process_stats.h"
#include "core/switches.h"

namespace finetune {

void phase_ended(std::string_view phase) {
  if (!kTimesSwitch.value()) return;
  std::fprintf(stderr, "finetune: time %.3f s, %.0f MiB: %.*s\n", seconds_since_start(),
               peak_memory_mb(), int(phase.size()), phase.data());
}

}  // namespace finetune

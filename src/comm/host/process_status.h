// The kernel's status of a process of this host.
#pragma once

#include <cstdint>

namespace finetune {

struct ProcessStatus {
  char state = 0;           // R, S, D, T (stopped), Z ...; 0: no such process
  uint64_t start_time = 0;  // distinguishes a process from a later one with the same pid

  bool alive() const { return state != 0 && state != 'Z' && state != 'X'; }
  bool stopped() const { return state == 'T' || state == 't'; }
};

ProcessStatus process_status(int pid);

}  // namespace finetune

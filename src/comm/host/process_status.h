// What the kernel says of a process of this host.
#pragma once

#include <cstdint>

namespace finetune {

struct ProcessStatus {
  char state = 0;           // R, S, D, T (stopped), Z ...; 0: there is no such process
  uint64_t start_time = 0;  // tells a process from a later one of the same number

  bool alive() const { return state != 0 && state != 'Z' && state != 'X'; }
  bool stopped() const { return state == 'T' || state == 't'; }
};

ProcessStatus process_status(int pid);

}  // namespace finetune

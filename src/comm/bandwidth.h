// How fast the processes of a run talk to each other here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "comm/communicator.h"

namespace finetune {

struct Bandwidth {
  int processes = 0;
  int hosts = 0;
  int64_t megabytes = 0;  // MiB of each process's arena
  double barrier_seconds = 0;
  double all_gather_seconds = 0;  // of 64 bytes from each process
  // Each process adds its slice of a neighbour's arena to its own; all processes of the first host
  // together, the traffic of reading both and writing one.
  double reduce_bytes_per_second = 0;
  // Between hosts, 0 with one host: 8 bytes there and back, and what each pair of processes sends
  // one way of a whole arena while it receives as much.
  double exchange_seconds = 0;
  double exchange_bytes_per_second = 0;
};

// Collective; every process gets the same result: each time is the slowest process's.
Bandwidth measure_bandwidth(Communicator& communicator, int64_t megabytes);

}  // namespace finetune

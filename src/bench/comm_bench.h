// bench comm: measures communication between the processes of a run, as a table and as JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "comm/communicator.h"
#include "core/text/json_value.h"

namespace finetune {

constexpr int64_t kMostArenaMegabytes = 65536;

struct Bandwidth {
  int processes = 0;
  int hosts = 0;
  int64_t megabytes = 0;  // MiB in each process's arena
  double barrier_seconds = 0;
  double all_gather_seconds = 0;  // for 64 bytes from each process
  // Each process adds its slice of a neighbour's arena to its own. Total of the first host's
  // processes: two reads and one write per element.
  double reduce_bytes_per_second = 0;
  // Between hosts (0 with one host): round trip of 8 bytes, and the rate of each pair of processes
  // in one direction while both send a whole arena.
  double exchange_seconds = 0;
  double exchange_bytes_per_second = 0;
};

// Collective. Every process gets the same result; each time is that of the slowest process.
// Error(usage) with a single process.
Bandwidth bench_comm(Communicator& communicator, int64_t megabytes);

JsonObject to_json(const Bandwidth& result);
std::string to_text(const Bandwidth& result);

}  // namespace finetune

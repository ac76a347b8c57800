// What a run reports about its process and its machine.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace finetune {

double peak_memory_mb();      // highest resident memory so far (VmHWM), MiB
void reset_peak_memory();     // from now on; not on every kernel
double resident_memory_mb();  // at this moment, MiB
double resident_file_mb();    // of it, pages of files: the program and its libraries
// Resident, but of pages that several processes have this one's share; 0 if unknown.
double proportional_memory_mb();
// Memory that new programs can have without swapping, MiB; 0 if unknown.
double available_memory_mb();
double free_swap_mb();
double address_space_left_mb();  // under the limit (ulimit -v), MiB; infinity where there is none
double seconds_since_start();    // since the process was started, loading included
// Seconds of all threads of this process so far: on a processor, and ready to run without one.
// Zeros where the kernel does not say.
struct ProcessorTime {
  double running = 0, waiting = 0;
};
ProcessorTime processor_time();
// For run.json: "host", "cpu", "cores", "memory", "kernel". Unknown facts are left out.
std::vector<std::pair<std::string, std::string>> host_facts();

}  // namespace finetune

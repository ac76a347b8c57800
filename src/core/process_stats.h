// Facts about the process and the machine for reports.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace finetune {

double peak_memory_mb();      // highest resident memory so far (VmHWM), MiB
void reset_peak_memory();     // not supported by every kernel
double resident_memory_mb();  // current resident memory, MiB
double resident_file_mb();    // resident file pages: the program and its libraries
// Resident memory, counting shared pages in proportion; 0 if unknown.
double proportional_memory_mb();
// Memory available to new programs without swapping, MiB; 0 if unknown.
double available_memory_mb();
double free_swap_mb();
double address_space_left_mb();  // below the limit (ulimit -v), MiB; infinity without a limit
double seconds_since_start();    // since the start of the process, including loading
// Seconds of all threads of this process so far: running, and ready but waiting for a processor.
// Zeros if the kernel does not report them.
struct ProcessorTime {
  double running = 0, waiting = 0;
};
ProcessorTime processor_time();
// For run.json: "host", "cpu", "cores", "memory", "kernel". Unknown facts are omitted.
std::vector<std::pair<std::string, std::string>> host_facts();

}  // namespace finetune

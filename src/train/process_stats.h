// What a run reports about its process and its machine.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace finetune {

double peak_memory_mb();       // highest resident memory so far (VmHWM), MiB
double seconds_since_start();  // since the process was started, loading included
// For run.json: "host", "cpu", "cores", "memory", "kernel". Unknown facts are left out.
std::vector<std::pair<std::string, std::string>> host_facts();

}  // namespace finetune

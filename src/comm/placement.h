// Divides the cores of a host between its processes.
#pragma once

#include <sched.h>

#include <string>
#include <vector>

#include "comm/communicator.h"

namespace finetune {

// The cores of this host that this user's programs may use (cpuset, cgroup quota), whatever a
// launcher has bound this process to.
int host_cores();

// Collective. Returns the number of threads for this process: its share of the cores and of the
// quota that the launcher gives to the processes of this host; at least 1.
int cores_for_process(Communicator& communicator);

// Collective. If a launcher has bound the processes of this host to fewer cores than they could
// use, returns a line with the option that prevents it; else "".
std::string binding_advice(Communicator& communicator);

// Returns the share of process `own`; each core is divided between the processes that may use it.
int share_of_cores(const std::vector<cpu_set_t>& masks, size_t own);

}  // namespace finetune

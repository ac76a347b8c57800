// How the cores of a host are divided between its processes.
#pragma once

#include <sched.h>

#include <string>
#include <vector>

#include "comm/communicator.h"

namespace finetune {

// The cores of this host that the system lets this user's programs have (cpuset, cgroup quota),
// whatever a launcher has bound this process to.
int host_cores();

// Collective. The threads that this process should run: its share of the cores that the launcher
// gives to the processes of this host, of the quota too; at least 1.
int cores_for_process(Communicator& communicator);

// Collective. Where a launcher has bound the processes of this host to fewer cores than they could
// have: one line that names the option against it. Else empty.
std::string binding_advice(Communicator& communicator);

// The share of process `own`: each core is divided between those that may use it.
int share_of_cores(const std::vector<cpu_set_t>& masks, size_t own);

}  // namespace finetune

// Numbers and names of the processes, and the common end of a run.
#include "comm/parallel_communicator.h"

#include <mpi.h>

namespace finetune {
namespace {

std::vector<std::string> names_of_host(const Topology& topology,
                                       const std::vector<std::string>& names) {
  const int first = topology.first_rank[size_t(topology.host)];
  return {names.begin() + first, names.begin() + first + topology.local_size()};
}

}  // namespace

ParallelCommunicator::ParallelCommunicator(Topology topology, std::vector<std::string> names,
                                           Control control)
    : topology_(std::move(topology)),
      names_(std::move(names)),
      group_(std::move(control), topology_.local_rank, topology_.host,
             names_of_host(topology_, names_)) {}

void ParallelCommunicator::finish() {
  note("the end", -1);
  barrier();  // nobody needs this process any more
  group_.liveness().mark_finished();
  // Should a process die before it is here too, the launcher ends this call, or the watching
  // thread.
  MPI_Finalize();
  group_.liveness().stop();
}

}  // namespace finetune

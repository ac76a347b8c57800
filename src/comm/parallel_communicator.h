// What `shared` and `mpi` have in common: numbers and names, life and death, and the end.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/host/host_group.h"
#include "comm/topology.h"

namespace finetune {

class ParallelCommunicator : public Communicator {
 public:
  // names: of all ranks.
  ParallelCommunicator(Topology topology, std::vector<std::string> names, Control control);

  int rank() const override { return topology_.rank; }
  int size() const override { return topology_.size(); }
  int host() const override { return topology_.host; }
  int hosts() const override { return topology_.hosts(); }
  int local_rank() const override { return topology_.local_rank; }
  int local_size() const override { return topology_.local_size(); }
  int first_rank(int host) const override { return topology_.first_rank.at(size_t(host)); }
  std::string name(int rank) const override { return names_.at(size_t(rank)); }
  int columns() const override { return topology_.columns(); }

  void set_timeout(double seconds) override { group_.liveness().set_timeout(seconds); }
  void note(const char* phase, int64_t step) override { group_.liveness().note(phase, step); }
  void waits_in(const char* what) override { group_.liveness().waits_in(what); }

  void host_barrier() override { group_.barrier(); }
  std::shared_ptr<void> allocate_shared(size_t bytes) override { return group_.allocate(bytes); }

  bool claim_voice() override { return group_.liveness().claim_voice(); }
  std::string stopped() const override { return group_.liveness().stopped(); }
  void abort(int code) override { group_.liveness().end(code); }
  void finish() override;

 protected:
  Topology topology_;
  std::vector<std::string> names_;
  HostGroup group_;
};

// All processes on one host: nothing but the end needs MPI.
std::unique_ptr<Communicator> make_shared_communicator(Topology topology,
                                                       std::vector<std::string> names,
                                                       Control control);
// Several hosts. Error(device).
std::unique_ptr<Communicator> make_mpi_communicator(Topology topology,
                                                    std::vector<std::string> names,
                                                    Control control);

}  // namespace finetune

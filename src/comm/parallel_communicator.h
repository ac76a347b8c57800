// The common part of `shared` and `mpi`: ranks, names, liveness, groups and the end.
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
  struct Parts {
    Topology topology;
    std::vector<std::string> names;  // by rank
    HostGroup host_group;
    ParallelCommunicator* run;  // the run's communicator; null: this one
  };
  explicit ParallelCommunicator(Parts parts);
  ~ParallelCommunicator() override;

  int rank() const override { return topology_.rank; }
  int size() const override { return topology_.size(); }
  int host() const override { return topology_.host; }
  int hosts() const override { return topology_.hosts(); }
  int local_rank() const override { return topology_.local_rank; }
  int local_size() const override { return topology_.local_size(); }
  int first_rank(int host) const override { return topology_.first_rank.at(size_t(host)); }
  std::string name(int rank) const override { return names_.at(size_t(rank)); }
  int columns() const override { return topology_.columns(); }

  void set_timeout(double seconds) override { liveness().set_timeout(seconds); }
  void set_patient(bool patient) override { liveness().set_patient(patient); }
  void set_remedy(const char* remedy) override { liveness().set_remedy(remedy); }
  void note(const char* phase, int64_t step) override { liveness().note(phase, step); }
  void waits_in(const char* what) override { liveness().waits_in(what); }

  void host_barrier() override { group_.barrier(); }
  std::shared_ptr<void> allocate_shared(size_t bytes) override { return group_.allocate(bytes); }

  std::unique_ptr<Communicator> split(int color) override;
  std::vector<std::unique_ptr<Link>> make_links(std::span<const LinkEnds> ends) override;
  void advance() override { group_.process().background().advance(); }
  int64_t bytes_sent() const override { return *sent_; }
  void count_sent(int64_t bytes) override { *sent_ += bytes; }

  bool claim_error_report() override { return liveness().claim_error_report(); }
  std::string stopped() const override { return group_.process().liveness().stopped(); }
  void abort(int code) override { liveness().end(code); }
  void finish() override;

 protected:
  // Collective, called by split(): creates the communicator of this process's group.
  virtual std::unique_ptr<Communicator> make_group(Parts parts, int color) = 0;
  // Creates an end of a link to a rank of another host; `number` is unique among this
  // communicator's links.
  virtual std::unique_ptr<Link> make_remote_link(int other, int number, size_t capacity) = 0;

  Liveness& liveness() { return group_.process().liveness(); }
  void count_for_each_other(size_t bytes) { *sent_ += int64_t(bytes) * (size() - 1); }
  void count_parts(std::span<const std::vector<uint8_t>> parts);  // counts a scatter's bytes

  Topology topology_;
  std::vector<std::string> names_;
  HostGroup group_;
  ParallelCommunicator* run_;
  std::shared_ptr<int64_t> sent_ = std::make_shared<int64_t>(0);

 private:
  int links_made_ = 0;
};

// For a run on one host: only its end needs MPI.
std::unique_ptr<Communicator> make_shared_communicator(ParallelCommunicator::Parts parts);
// For a run on several hosts. Error(device).
std::unique_ptr<Communicator> make_mpi_communicator(ParallelCommunicator::Parts parts);

}  // namespace finetune

// Nonblocking MPI, and waiting for it without hanging and without taking a core.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "comm/host/host_group.h"

namespace finetune {

// Error(device) unless `result` is a success. `what`: "all_gather".
void check_mpi(int result, const char* what);

// Requests in flight together, most of them pieces of larger transfers: counts of MPI are ints.
class Transfers {
 public:
  Transfers(MPI_Comm comm, const char* what) : comm_(comm), what_(what) {}

  void receive(void* data, size_t bytes, int from, int tag);
  void send(const void* data, size_t bytes, int to, int tag);
  // One slot for a nonblocking collective to fill.
  MPI_Request* collective();

  // Until all have ended. `late`: as Wait; `somebody` names whom nobody of this host is to blame
  // for, from the peer of the first transfer that has not ended (-1: a collective).
  void wait(HostGroup& group, const Wait::Late& late,
            const std::function<std::string(int)>& somebody);

 private:
  int first_pending();

  MPI_Comm comm_;
  const char* what_;
  std::vector<MPI_Request> requests_;
  std::vector<int> peers_;
  size_t bytes_ = 0;
};

}  // namespace finetune

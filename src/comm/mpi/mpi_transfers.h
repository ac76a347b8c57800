// Nonblocking MPI, and waiting for it without hanging and without taking a core.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "comm/host/own_process.h"

namespace finetune {

// Error(device) unless `result` is a success. `what`: "all_gather".
void check_mpi(int result, const char* what);

// A wait for what MPI carries. A peer is a rank in the communicator, or -1: of a collective.
struct WaitForHosts {
  std::span<const int> processes;  // as Awaited
  Awaited::Late late;
  // Whom nobody of this host is to blame for: its name, and whether it waits itself.
  std::function<std::string(int)> name;
  std::function<bool(int)> waits;
  std::string pending;  // as Awaited
};

// Requests in flight together, most of them pieces of larger transfers: counts of MPI are ints.
class Transfers {
 public:
  Transfers(MPI_Comm comm, const char* what) : comm_(comm), what_(what) {}

  void receive(void* data, size_t bytes, int from, int tag);
  void send(const void* data, size_t bytes, int to, int tag);
  // One slot for a nonblocking collective to fill.
  MPI_Request* collective();

  // Whether all have ended.
  bool ended();
  // Until all have ended.
  void wait(OwnProcess& process, const WaitForHosts& what);

 private:
  int first_pending();

  MPI_Comm comm_;
  const char* what_;
  std::vector<MPI_Request> requests_;
  std::vector<int> peers_;
  size_t bytes_ = 0;
};

}  // namespace finetune

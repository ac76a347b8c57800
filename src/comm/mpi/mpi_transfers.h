// Nonblocking MPI, and waits for it that neither hang nor keep a core busy.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "comm/host/own_process.h"

namespace finetune {

// Throws Error(device) unless `result` is a success. `what`: "all_gather".
void check_mpi(int result, const char* what);

// Describes a wait for MPI. A peer is a rank in the communicator; -1: a collective.
struct WaitForHosts {
  std::span<const int> processes;  // see Awaited
  Awaited::Late late;
  // Used if no process of this host is to blame: a peer's name, and whether it waits itself.
  std::function<std::string(int)> name;
  std::function<bool(int)> waits;
  std::string pending;  // see Awaited
};

// MPI requests in flight together. Large transfers are split because MPI counts are ints.
class Transfers {
 public:
  Transfers(MPI_Comm comm, const char* what) : comm_(comm), what_(what) {}

  void receive(void* data, size_t bytes, int from, int tag);
  void send(const void* data, size_t bytes, int to, int tag);
  // Returns a slot for the request of a nonblocking collective.
  MPI_Request* collective();

  // Returns whether all have completed.
  bool ended();
  // Waits until all have completed.
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

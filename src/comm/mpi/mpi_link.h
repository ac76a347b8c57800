// A link between two processes of different hosts, over MPI.
#pragma once

#include <mpi.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/link.h"
#include "comm/mpi/mpi_transfers.h"

namespace finetune {

class MpiLink final : public Link {
 public:
  struct End {
    int rank;  // in the communicator
    int tag;   // unique to this link
    std::string name;
    std::function<bool()> waits;  // see Awaited::excused
  };
  MpiLink(std::shared_ptr<OwnProcess> process, MPI_Comm comm, End other, size_t capacity,
          std::shared_ptr<int64_t> of_communicator);

  void send(const void* data, size_t bytes, const LinkMessage& message) override;
  void receive(void* data, size_t bytes, const LinkMessage& message) override;

 private:
  // A message in flight. It completes by itself: the link may be destroyed before.
  struct Sent {
    std::vector<std::byte> data;
    Transfers transfers;
  };

  void wait(Transfers& transfers, const std::string& pending);

  std::shared_ptr<OwnProcess> process_;
  MPI_Comm comm_;
  End other_;
  size_t capacity_;
  std::shared_ptr<Sent> sent_;
};

}  // namespace finetune

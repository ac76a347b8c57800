// Processes of several hosts: MPI between all, shared memory inside each host.
#include <sys/prctl.h>

#include <algorithm>
#include <cstring>

#include "comm/mpi/mpi_transfers.h"
#include "comm/parallel_communicator.h"
#include "core/error.h"

namespace finetune {
namespace {

constexpr size_t kPieceBytes = size_t(1) << 20;  // of a collective
enum Tag { kGather = 1, kScatter, kExchange };

class Mpi final : public ParallelCommunicator {
 public:
  Mpi(Topology topology, std::vector<std::string> names, Control control)
      : ParallelCommunicator(std::move(topology), std::move(names), std::move(control)) {
    ::prctl(PR_SET_TIMERSLACK, 5'000);  // short sleeps are short: 50 microseconds are usual
    check_mpi(MPI_Comm_split(MPI_COMM_WORLD, 0, rank(), &comm_), "MPI_Comm_split");
    check_mpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  }

  void barrier() override {
    Transfers transfers(comm_, "barrier");
    check_mpi(MPI_Ibarrier(comm_, transfers.collective()), "barrier");
    wait(transfers);
  }

  void all_gather(const void* mine, size_t bytes, void* all) override {
    std::vector<std::byte> pieces(bytes > kPieceBytes ? size_t(size()) * kPieceBytes : 0);
    for (size_t begin = 0; begin < bytes; begin += kPieceBytes) {
      const size_t piece = std::min(kPieceBytes, bytes - begin);
      void* gathered = pieces.empty() ? all : pieces.data();
      Transfers transfers(comm_, "all_gather");
      check_mpi(MPI_Iallgather(static_cast<const std::byte*>(mine) + begin, int(piece), MPI_BYTE,
                               gathered, int(piece), MPI_BYTE, comm_, transfers.collective()),
                "all_gather");
      wait(transfers);
      if (pieces.empty()) return;
      for (size_t i = 0; i < size_t(size()); ++i) {
        std::memcpy(static_cast<std::byte*>(all) + i * bytes + begin, pieces.data() + i * piece,
                    piece);
      }
    }
  }

  void broadcast(void* data, size_t bytes, int root) override {
    for (size_t begin = 0; begin < bytes; begin += kPieceBytes) {
      const size_t piece = std::min(kPieceBytes, bytes - begin);
      Transfers transfers(comm_, "broadcast");
      check_mpi(MPI_Ibcast(static_cast<std::byte*>(data) + begin, int(piece), MPI_BYTE, root, comm_,
                           transfers.collective()),
                "broadcast");
      wait(transfers);
    }
  }

  std::vector<uint8_t> scatter(std::span<const std::vector<uint8_t>> parts) override {
    std::vector<uint64_t> sizes(static_cast<size_t>(size()));
    if (rank() == 0) {
      FINETUNE_CHECK(parts.size() == sizes.size());
      for (size_t i = 0; i < sizes.size(); ++i) sizes[i] = parts[i].size();
    }
    broadcast(sizes.data(), sizes.size() * sizeof sizes[0], 0);
    std::vector<uint8_t> mine(sizes[size_t(rank())]);
    Transfers transfers(comm_, "scatter");
    if (rank() == 0) {
      for (int i = 1; i < size(); ++i) {
        transfers.send(parts[size_t(i)].data(), sizes[size_t(i)], i, kScatter);
      }
      mine = parts[0];
    } else {
      transfers.receive(mine.data(), mine.size(), 0, kScatter);
    }
    wait(transfers);
    return mine;
  }

  std::vector<std::vector<uint8_t>> gather(std::span<const uint8_t> mine) override {
    const uint64_t own = mine.size();
    std::vector<uint64_t> sizes(static_cast<size_t>(size()));
    all_gather(&own, sizeof own, sizes.data());
    std::vector<std::vector<uint8_t>> all;
    Transfers transfers(comm_, "gather");
    if (rank() == 0) {
      all.resize(sizes.size());
      all[0].assign(mine.begin(), mine.end());
      for (int i = 1; i < size(); ++i) {
        all[size_t(i)].resize(sizes[size_t(i)]);
        transfers.receive(all[size_t(i)].data(), sizes[size_t(i)], i, kGather);
      }
    } else {
      transfers.send(mine.data(), mine.size(), 0, kGather);
    }
    wait(transfers);
    return all;
  }

  void exchange(std::span<const Outgoing> out, std::span<const Incoming> in) override {
    FINETUNE_CHECK(local_rank() < columns() || (out.empty() && in.empty()));
    Transfers transfers(comm_, "exchange");
    for (const Incoming& part : in) {
      transfers.receive(part.data, part.bytes, peer(part.host), kExchange);
    }
    for (const Outgoing& part : out) {
      transfers.send(part.data, part.bytes, peer(part.host), kExchange);
    }
    transfers.wait(
        group_, [](const ProcessSlot&) { return false; }, [this](int rank) { return name(rank); });
  }

 private:
  int peer(int of_host) const {
    FINETUNE_CHECK(of_host >= 0 && of_host < hosts() && of_host != host());
    return first_rank(of_host) + local_rank();
  }

  // For what all processes do in the same order.
  void wait(Transfers& transfers) {
    const uint64_t number = ++rounds_;
    group_.own_slot().rounds.store(number, std::memory_order_relaxed);
    transfers.wait(
        group_, [number](const ProcessSlot& slot) { return slot.rounds.load() < number; },
        [this](int rank) { return rank < 0 ? "a process of another host" : name(rank); });
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  uint64_t rounds_ = 0;
};

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator(Topology topology,
                                                    std::vector<std::string> names,
                                                    Control control) {
  return std::make_unique<Mpi>(std::move(topology), std::move(names), std::move(control));
}

}  // namespace finetune

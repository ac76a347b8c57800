// The communicator of several hosts: MPI between hosts, shared memory inside each.
#include <mpi.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/link.h"
#include "comm/mpi/mpi_transfers.h"
#include "comm/mpi/wait_inquiry.h"
#include "comm/parallel_communicator.h"
#include "core/error.h"

namespace finetune {
namespace {

// A link between two processes of different hosts, over MPI.
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

MpiLink::MpiLink(std::shared_ptr<OwnProcess> process, MPI_Comm comm, End other, size_t capacity,
                 std::shared_ptr<int64_t> of_communicator)
    : Link(std::move(of_communicator)),
      process_(std::move(process)),
      comm_(comm),
      other_(std::move(other)),
      capacity_(capacity) {}

void MpiLink::send(const void* data, size_t bytes, const LinkMessage& message) {
  if (bytes == 0) return;
  const std::string pending = concat("is waiting to send ", message.text(), " to it");
  if (sent_) wait(sent_->transfers, pending);
  count(bytes);
  if (bytes > capacity_) {
    Transfers transfers(comm_, "send");
    transfers.send(data, bytes, other_.rank, other_.tag);
    return wait(transfers, pending);
  }
  // The previous message has been sent: reuse its buffer.
  auto buffer = sent_ ? std::move(sent_->data) : std::vector<std::byte>();
  buffer.resize(bytes);
  std::memcpy(buffer.data(), data, bytes);
  sent_ = std::make_shared<Sent>(Sent{std::move(buffer), Transfers(comm_, "send")});
  sent_->transfers.send(sent_->data.data(), bytes, other_.rank, other_.tag);
  process_->background().add([sent = sent_] { return !sent->transfers.ended(); });
}

void MpiLink::receive(void* data, size_t bytes, const LinkMessage& message) {
  if (bytes == 0) return;
  Transfers transfers(comm_, "receive");
  transfers.receive(data, bytes, other_.rank, other_.tag);
  wait(transfers, concat("is waiting for ", message.text(), " from it"));
}

void MpiLink::wait(Transfers& transfers, const std::string& pending) {
  transfers.wait(*process_, {{},
                             [](const ProcessSlot&) { return false; },
                             [this](int) { return other_.name; },
                             [this](int) { return other_.waits(); },
                             pending});
}

constexpr size_t kPieceBytes = size_t(1) << 20;  // collectives transfer pieces of this size
enum Tag { kGather = 1, kScatter, kExchange, kFirstLink };
constexpr int kMostLinks = 32'000;  // MPI guarantees tags up to 32,767 only
constexpr int kMostAsked = 64;      // processes to ask whether they wait too

class Mpi final : public ParallelCommunicator {
 public:
  Mpi(Parts parts, MPI_Comm comm, std::shared_ptr<WaitInquiry> inquiry)
      : ParallelCommunicator(std::move(parts)), comm_(comm), inquiry_(std::move(inquiry)) {
    check_mpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  }
  ~Mpi() override {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (run_ && !finalized) MPI_Comm_free(&comm_);
  }

  void barrier() override {
    Transfers transfers(comm_, "barrier");
    check_mpi(MPI_Ibarrier(comm_, transfers.collective()), "barrier");
    wait(transfers);
  }

  void all_gather(const void* mine, size_t bytes, void* all) override {
    count_for_each_other(bytes);
    gather_at_all(mine, bytes, all);
  }

  void broadcast(void* data, size_t bytes, int root) override {
    if (rank() == root) count_for_each_other(bytes);
    tell_all(data, bytes, root);
  }

  std::vector<uint8_t> scatter(std::span<const std::vector<uint8_t>> parts) override {
    std::vector<uint64_t> sizes(static_cast<size_t>(size()));
    if (rank() == 0) {
      FINETUNE_CHECK(parts.size() == sizes.size());
      for (size_t i = 0; i < sizes.size(); ++i) sizes[i] = parts[i].size();
    }
    count_parts(parts);
    tell_all(sizes.data(), sizes.size() * sizeof sizes[0], 0);
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
    if (rank() != 0) count_sent(int64_t(mine.size()));
    const uint64_t own = mine.size();
    std::vector<uint64_t> sizes(static_cast<size_t>(size()));
    gather_at_all(&own, sizeof own, sizes.data());
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

  void exchange(std::span<const Outgoing> out, std::span<const Incoming> in,
                const LinkMessage& message) override {
    Transfers transfers(comm_, "exchange");
    for (const Incoming& part : in) {
      FINETUNE_CHECK(topology_.host_of(part.rank) != host());
      transfers.receive(part.data, part.bytes, part.rank, kExchange);
    }
    for (const Outgoing& part : out) {
      FINETUNE_CHECK(topology_.host_of(part.rank) != host());
      count_sent(int64_t(part.bytes));
      transfers.send(part.data, part.bytes, part.rank, kExchange);
    }
    transfers.wait(group_.process(), {{},
                                      [](const ProcessSlot&) { return false; },
                                      [this](int rank) { return name(rank); },
                                      [this](int rank) { return waits(rank); },
                                      concat("is exchanging ", message.text(), " with it")});
  }

 private:
  std::unique_ptr<Communicator> make_group(Parts parts, int color) override {
    const bool on_one_host = parts.topology.hosts() == 1;
    MPI_Comm comm = MPI_COMM_NULL;
    {
      const LibraryCall call(*this, "MPI_Comm_split");
      check_mpi(MPI_Comm_split(comm_, on_one_host ? MPI_UNDEFINED : color, rank(), &comm),
                "MPI_Comm_split");
    }
    if (on_one_host) return make_shared_communicator(std::move(parts));
    return std::make_unique<Mpi>(std::move(parts), comm, inquiry_);
  }

  std::unique_ptr<Link> make_remote_link(int other, int number, size_t capacity) override {
    FINETUNE_CHECK(number < kMostLinks);
    MpiLink::End end{other, kFirstLink + number, name(other),
                     [inquiry = inquiry_, rank = topology_.launcher_rank[size_t(other)]] {
                       return inquiry->waits(rank);
                     }};
    return std::make_unique<MpiLink>(group_.shared_process(), comm_, std::move(end), capacity,
                                     sent_);
  }

  void gather_at_all(const void* mine, size_t bytes, void* all) {
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

  void tell_all(void* data, size_t bytes, int root) {
    for (size_t begin = 0; begin < bytes; begin += kPieceBytes) {
      const size_t piece = std::min(kPieceBytes, bytes - begin);
      Transfers transfers(comm_, "broadcast");
      check_mpi(MPI_Ibcast(static_cast<std::byte*>(data) + begin, int(piece), MPI_BYTE, root, comm_,
                           transfers.collective()),
                "broadcast");
      wait(transfers);
    }
  }

  // For operations that all processes do in the same order.
  void wait(Transfers& transfers) {
    const uint64_t number = ++rounds_;
    const auto group = size_t(group_.number());
    group_.process().slot().rounds[group].store(number, std::memory_order_relaxed);
    transfers.wait(
        group_.process(),
        {group_.slots(),
         [number, group](const ProcessSlot& slot) { return slot.rounds[group].load() < number; },
         [this](int rank) { return rank < 0 ? silent_process() : name(rank); },
         [this](int rank) { return rank < 0 ? silent_processes().empty() : waits(rank); },
         {}});
  }

  bool waits(int of_rank) { return inquiry_->waits(topology_.launcher_rank[size_t(of_rank)]); }
  // Processes of other hosts that do not say that they wait themselves; all of them if there are
  // many.
  std::vector<int> silent_processes() {
    std::vector<int> silent;
    for (int i = 0; i < size(); ++i) {
      if (topology_.host_of(i) == host() || (size() <= kMostAsked && waits(i))) continue;
      silent.push_back(i);
    }
    return silent;
  }
  std::string silent_process() {
    const std::vector<int> silent = silent_processes();
    return silent.size() == 1 ? name(silent[0]) : "a process of another host";
  }

  MPI_Comm comm_;
  std::shared_ptr<WaitInquiry> inquiry_;
  uint64_t rounds_ = 0;
};

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator(ParallelCommunicator::Parts parts) {
  // makes short sleeps short: the default slack is 50 microseconds
  ::prctl(PR_SET_TIMERSLACK, 5'000);
  MPI_Comm comm = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split(MPI_COMM_WORLD, 0, parts.topology.rank, &comm), "MPI_Comm_split");
  auto inquiry = std::make_shared<WaitInquiry>();
  parts.host_group.process().liveness().set_other_hosts(
      [inquiry] { inquiry->answer(); }, [inquiry] { return inquiry->may_report(); });
  return std::make_unique<Mpi>(std::move(parts), comm, inquiry);
}

}  // namespace finetune

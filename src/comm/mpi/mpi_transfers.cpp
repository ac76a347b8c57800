// Starts nonblocking MPI transfers in bounded pieces, and waits for them.
#include "comm/mpi/mpi_transfers.h"

#include <sched.h>

#include <algorithm>
#include <ctime>

#include "core/clock.h"
#include "core/error.h"

namespace finetune {
namespace {

constexpr size_t kTransferBytes = size_t(16) << 20;
constexpr long kLongestSleep = 100'000, kFirstSleep = 1'000;  // nanoseconds
// MPI makes progress only while it is polled. A thread that waits for a large transfer yields for
// the time that the bytes take at this rate; only then does it sleep.
constexpr double kSlowBytesPerSecond = 100e6;
// A host with a late process reports at the time limit; a host that only sees another host late
// reports this much later.
constexpr double kBeyondAnotherHost = 2;

}  // namespace

void check_mpi(int result, const char* what) {
  if (result == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(result, text, &length);
  throw device_error("MPI failed in ", what, ": ", std::string(text, size_t(length)));
}

void Transfers::receive(void* data, size_t bytes, int from, int tag) {
  bytes_ += bytes;
  for (size_t begin = 0; begin < bytes; begin += kTransferBytes) {
    const int count = int(std::min(kTransferBytes, bytes - begin));
    requests_.emplace_back();
    peers_.push_back(from);
    check_mpi(MPI_Irecv(static_cast<std::byte*>(data) + begin, count, MPI_BYTE, from, tag, comm_,
                        &requests_.back()),
              what_);
  }
}

void Transfers::send(const void* data, size_t bytes, int to, int tag) {
  bytes_ += bytes;
  for (size_t begin = 0; begin < bytes; begin += kTransferBytes) {
    const int count = int(std::min(kTransferBytes, bytes - begin));
    requests_.emplace_back();
    peers_.push_back(to);
    check_mpi(MPI_Isend(static_cast<const std::byte*>(data) + begin, count, MPI_BYTE, to, tag,
                        comm_, &requests_.back()),
              what_);
  }
}

MPI_Request* Transfers::collective() {
  requests_.emplace_back();
  peers_.push_back(-1);
  return &requests_.back();
}

bool Transfers::ended() {
  int all = 0;
  check_mpi(MPI_Testall(int(requests_.size()), requests_.data(), &all, MPI_STATUSES_IGNORE), what_);
  return all != 0;
}

void Transfers::wait(OwnProcess& process, const WaitForHosts& what) {
  if (process.spin_until([this] { return ended(); })) return;
  for (double end = seconds_now() + double(bytes_) / kSlowBytesPerSecond; seconds_now() < end;) {
    ::sched_yield();
    if (ended()) return;
  }
  Wait wait(process.liveness(), {what.processes, what.late, kBeyondAnotherHost,
                                 [&] { return what.name(first_pending()); }, what.pending,
                                 [&] { return what.waits(first_pending()); }});
  for (long sleep = kFirstSleep; !ended(); sleep = std::min(2 * sleep, kLongestSleep)) {
    const timespec time{0, sleep};
    ::nanosleep(&time, nullptr);
    wait.look();
  }
}

int Transfers::first_pending() {
  for (size_t i = 0; i < requests_.size(); ++i) {
    int done = 0;
    MPI_Request_get_status(requests_[i], &done, MPI_STATUS_IGNORE);
    if (!done) return peers_[i];
  }
  return -1;
}

}  // namespace finetune

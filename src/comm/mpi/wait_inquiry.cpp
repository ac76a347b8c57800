// Asks processes whether they wait, too. Questions and answers are messages of 0 bytes.
#include "comm/mpi/wait_inquiry.h"

#include <unistd.h>

#include <algorithm>

#include "comm/mpi/mpi_transfers.h"
#include "core/clock.h"

namespace finetune {
namespace {

enum InquiryTag { kQuestion = 1, kAnswer, kReports };
constexpr double kHear = 0.5;    // seconds in which others say that they are about to report
constexpr double kAgain = 0.5;   // seconds between two questions
constexpr double kLately = 1.5;  // seconds that an answer stays valid

void send_nothing(int to, int tag, MPI_Comm comm) {
  MPI_Request request;
  check_mpi(MPI_Isend(nullptr, 0, MPI_BYTE, to, tag, comm, &request), "an inquiry");
  check_mpi(MPI_Request_free(&request), "an inquiry");
}

}  // namespace

WaitInquiry::WaitInquiry() {
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &comm_), "MPI_Comm_dup");
  check_mpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

bool WaitInquiry::take(int tag, int& from) {
  int there = 0;
  MPI_Status status;
  check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, tag, comm_, &there, &status), "an inquiry");
  if (!there) return false;
  from = status.MPI_SOURCE;
  check_mpi(MPI_Recv(nullptr, 0, MPI_BYTE, from, tag, comm_, MPI_STATUS_IGNORE), "an inquiry");
  return true;
}

void WaitInquiry::answer() {
  for (int from; take(kQuestion, from);) send_nothing(from, kAnswer, comm_);
  for (int from; take(kReports, from);) first_reporter_ = std::min(first_reporter_, from);
}

bool WaitInquiry::may_report() {
  int size = 0, own = 0;
  check_mpi(MPI_Comm_size(comm_, &size), "MPI_Comm_size");
  check_mpi(MPI_Comm_rank(comm_, &own), "MPI_Comm_rank");
  for (int i = 0; i < size; ++i) {
    if (i != own) send_nothing(i, kReports, comm_);
  }
  for (const double end = seconds_now() + kHear; seconds_now() < end; ::usleep(1000)) answer();
  return own < first_reporter_;
}

bool WaitInquiry::waits(int launcher_rank) {
  const double now = seconds_now();
  for (int from; take(kAnswer, from);) others_[from].answered = now;
  // Starts as if asked and answered too long ago to count.
  Other& other =
      others_.try_emplace(launcher_rank, Other{now - 2 * kAgain, now - 2 * kLately}).first->second;
  if (now - other.asked > kAgain) {
    other.asked = now;
    send_nothing(launcher_rank, kQuestion, comm_);
  }
  return now - other.answered < kLately;
}

}  // namespace finetune

// Processes of several hosts that wait in vain ask each other before one of them reports. A waiting
// process answers when asked. In a chain of processes that each wait for the next, only the last
// one has a reason to report; of several such processes, the one of lowest rank reports.
#pragma once

#include <mpi.h>

#include <climits>
#include <map>

namespace finetune {

class WaitInquiry {
 public:
  // Collective over all processes; ranks are the launcher's.
  WaitInquiry();
  WaitInquiry(const WaitInquiry&) = delete;

  // Called at every check of a wait: answers pending questions.
  void answer();
  // Tells all that this process is about to end the job and listens for a moment whether others are
  // too. Returns whether this process reports.
  bool may_report();
  // Asks the process; returns whether it answered lately.
  bool waits(int launcher_rank);

 private:
  struct Other {
    double asked, answered;  // last times, by this process's clock
  };

  bool take(int tag, int& from);

  MPI_Comm comm_ = MPI_COMM_NULL;
  std::map<int, Other> others_;
  int first_reporter_ = INT_MAX;
};

}  // namespace finetune

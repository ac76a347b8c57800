// What processes of several hosts that wait in vain tell each other before one of them reports.
// Who waits says so when it is asked: in a row of processes each of which waits for the next, only
// the last has reason to report. Of several that have, the one of lowest number does.
#pragma once

#include <mpi.h>

#include <climits>
#include <map>

namespace finetune {

class WaitInquiry {
 public:
  // Of all processes, collective; their numbers are the launcher's.
  WaitInquiry();
  WaitInquiry(const WaitInquiry&) = delete;

  // Of a wait, at every look: answers those who have asked.
  void answer();
  // Tells all that this process is about to end the job, and hears for a moment whether others are:
  // whether it is the one to say why.
  bool may_report();
  // Asks the process, and says whether it has answered lately.
  bool waits(int launcher_rank);

 private:
  struct Other {
    double asked, answered;  // last, by this process's clock
  };

  bool take(int tag, int& from);

  MPI_Comm comm_ = MPI_COMM_NULL;
  std::map<int, Other> others_;
  int first_reporter_ = INT_MAX;
};

}  // namespace finetune

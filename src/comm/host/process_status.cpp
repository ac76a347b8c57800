// Reads a process's state and start time from /proc.
#include "comm/host/process_status.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace finetune {

ProcessStatus process_status(int pid) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  char text[1024];
  ssize_t length = ::read(file, text, sizeof text - 1);
  ::close(file);
  if (length <= 0) return {};
  text[length] = 0;
  // The second field, the name in parentheses, may contain anything, even parentheses.
  const char* at = std::strrchr(text, ')');
  if (!at || at[1] == 0) return {};
  ProcessStatus status;
  unsigned long long start = 0;
  at += 2;
  status.state = *at;
  for (int field = 3; at && field < 22; ++field) {
    at = std::strchr(at, ' ');
    if (at) ++at;
  }
  if (!at || std::sscanf(at, "%llu", &start) != 1) return {};
  status.start_time = start;
  return status;
}

}  // namespace finetune

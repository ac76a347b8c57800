// Writes and reads each process's current phase and what it waits for.
#include "comm/host/control_block.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "core/text/text.h"

namespace finetune {
namespace {

template <size_t kWords>
void write_text(SharedText<kWords>& words, const char* from) {
  char text[sizeof words] = {};
  std::strncpy(text, from, sizeof text - 1);
  for (size_t i = 0; i < kWords; ++i) {
    uint64_t word;
    std::memcpy(&word, text + i * sizeof word, sizeof word);
    words[i].store(word, std::memory_order_relaxed);
  }
}

template <size_t kWords>
std::string read_text(const SharedText<kWords>& words) {
  char text[sizeof words + 1] = {};
  for (size_t i = 0; i < kWords; ++i) {
    const uint64_t word = words[i].load(std::memory_order_relaxed);
    std::memcpy(text + i * sizeof word, &word, sizeof word);
  }
  return text;
}

}  // namespace

void write_phase(ProcessSlot& slot, const char* phase, int64_t step) {
  write_text(slot.phase, phase);
  slot.step.store(step, std::memory_order_relaxed);
}

std::string read_phase(const ProcessSlot& slot) {
  const int64_t step = slot.step.load(std::memory_order_relaxed);
  std::string out = read_text(slot.phase);
  if (step >= 0) out += concat(", step ", step);
  return out;
}

void write_pending(ProcessSlot& slot, int other_end, const std::string& pending) {
  write_text(slot.pending, pending.c_str());
  slot.waits_for.store(other_end + 1);
}

void end_pending(ProcessSlot& slot) {
  slot.waits_for.store(0);
}

std::string read_pending(const ProcessSlot& slot) {
  return read_text(slot.pending);
}

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

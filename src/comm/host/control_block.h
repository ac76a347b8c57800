// How the processes of one host watch each other: a block of shared memory with each process's
// phase, what it waits for, and whether the job ends. Also sleeping on it, and the kernel's status.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <string>

namespace finetune {

// groups that a process can be in at once; number 0 is the whole run
constexpr int kMostGroups = 8;

// Text that may be read while it is written: each word is atomic.
template <size_t kWords>
using SharedText = std::array<std::atomic<uint64_t>, kWords>;

// Shared memory starts as zeros, the first value of every member.
struct alignas(128) ProcessSlot {
  std::atomic<int32_t> pid;
  std::atomic<uint64_t> start_time;
  std::atomic<uint32_t> finished;  // no process waits for this one any more
  std::atomic<uint32_t> waiting;   // it waits for another process and so is not to blame
  std::atomic<uint64_t> waits;     // count of waits begun and ended
  // For each of its groups: how many host barriers and inter-host collectives it has entered.
  std::array<std::atomic<uint64_t>, kMostGroups> barriers;
  std::array<std::atomic<uint64_t>, kMostGroups> rounds;
  std::atomic<int64_t> step;
  SharedText<8> phase;
  // 1 + local rank of the process at the other end of the awaited link; 0: waits for no link
  std::atomic<int32_t> waits_for;
  SharedText<16> pending;  // "is waiting for activations of micro-batch 3 from it"
};

struct ControlBlock {
  alignas(128) std::atomic<uint32_t> ending;  // 0, or kEnding + exit code: all processes exit
  std::atomic<uint32_t> error_reporter;  // 1 + local rank of the process that reports the error
};

constexpr uint32_t kEnding = 0x100;

static_assert(std::atomic<uint64_t>::is_always_lock_free);

// The control block and, behind it, one slot for each process of the host.
class Control {
 public:
  static size_t bytes(int processes) {
    return sizeof(ControlBlock) + size_t(processes) * sizeof(ProcessSlot);
  }
  Control(std::shared_ptr<void> memory, int processes)
      : memory_(std::move(memory)), processes_(processes) {}

  int processes() const { return processes_; }
  ControlBlock& block() const { return *static_cast<ControlBlock*>(memory_.get()); }
  ProcessSlot& slot(int local_rank) const {
    auto* behind_block = static_cast<std::byte*>(memory_.get()) + sizeof(ControlBlock);
    return reinterpret_cast<ProcessSlot*>(behind_block)[local_rank];
  }

 private:
  std::shared_ptr<void> memory_;
  int processes_;
};

// The phase in a slot, such as "backward pass, step 17".
void write_phase(ProcessSlot& slot, const char* phase, int64_t step);
std::string read_phase(const ProcessSlot& slot);

// What a process awaits from the other end of a link, truncated to the available space.
void write_pending(ProcessSlot& slot, int other_end, const std::string& pending);
void end_pending(ProcessSlot& slot);
std::string read_pending(const ProcessSlot& slot);

// Sleeps until a 32-bit word changes, in memory that several processes map. std::atomic::wait
// cannot do this: it uses futexes private to a process. Returns when the word is no longer `old`,
// on a wake-up or a signal, or after `seconds`.
inline void futex_wait(const std::atomic<uint32_t>& word, uint32_t old, double seconds) {
  timespec limit{};
  limit.tv_sec = time_t(seconds);
  limit.tv_nsec = long((seconds - double(limit.tv_sec)) * 1e9);
  ::syscall(SYS_futex, &word, FUTEX_WAIT, old, &limit, nullptr, 0);
}

inline void futex_wake_all(const std::atomic<uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// The kernel's status of a process of this host.
struct ProcessStatus {
  char state = 0;           // R, S, D, T (stopped), Z ...; 0: no such process
  uint64_t start_time = 0;  // distinguishes a process from a later one with the same pid

  bool alive() const { return state != 0 && state != 'Z' && state != 'X'; }
  bool stopped() const { return state == 'T' || state == 't'; }
};

ProcessStatus process_status(int pid);

}  // namespace finetune

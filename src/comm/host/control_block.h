// The block of shared memory by which the processes of one host watch each other.
// It has what each is at, what it waits for, and the end of the job.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace finetune {

constexpr int kMostGroups = 8;  // that a process is in at once; number 0 is the whole run

// Text that others read while it is written: words, each whole.
template <size_t kWords>
using SharedText = std::array<std::atomic<uint64_t>, kWords>;

// Shared memory begins as zeros, which is every member's first value.
struct alignas(128) ProcessSlot {
  std::atomic<int32_t> pid;
  std::atomic<uint64_t> start_time;
  std::atomic<uint32_t> finished;  // nobody waits for it any more
  std::atomic<uint32_t> waiting;   // for another process: then it is not the one to blame
  std::atomic<uint64_t> waits;     // begun and ended, so far
  // Of each group that it is in: barriers of the host, and collectives between hosts, that it has
  // come to.
  std::array<std::atomic<uint64_t>, kMostGroups> barriers;
  std::array<std::atomic<uint64_t>, kMostGroups> rounds;
  std::atomic<int64_t> step;
  SharedText<8> phase;
  std::atomic<int32_t> waits_for;  // 1 + local rank of a link's other end; 0: none of this host
  SharedText<16> pending;          // then: "is waiting for activations of micro-batch 3 from it"
};

struct ControlBlock {
  alignas(128) std::atomic<uint32_t> ending;  // 0, or kEnding + exit code: all leave at once
  std::atomic<uint32_t> error_reporter;  // 1 + local rank of the process that reports the error
};

constexpr uint32_t kEnding = 0x100;

static_assert(std::atomic<uint64_t>::is_always_lock_free);

// The control block and what lies behind it: a slot of each process of the host.
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

// The phase that a slot tells of: "backward pass, step 17".
void write_phase(ProcessSlot& slot, const char* phase, int64_t step);
std::string read_phase(const ProcessSlot& slot);

// What a process wants of the other end of a link; cut to the place that there is.
void write_pending(ProcessSlot& slot, int other_end, const std::string& pending);
void end_pending(ProcessSlot& slot);
std::string read_pending(const ProcessSlot& slot);

}  // namespace finetune

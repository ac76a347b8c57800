// The block of shared memory by which the processes of one host run together.
// It has a barrier, mailboxes, what each is at, and the end of the job.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace finetune {

constexpr size_t kMailboxBytes = size_t(256) << 10;

// Shared memory begins as zeros, which is every member's first value.
struct alignas(128) ProcessSlot {
  std::atomic<int32_t> pid;
  std::atomic<uint64_t> start_time;
  std::atomic<uint32_t> finished;  // nobody waits for it any more
  std::atomic<uint32_t> waiting;   // for another process: then it is not the one to blame
  std::atomic<uint64_t> barriers;  // of the host, that it has come to
  std::atomic<uint64_t> rounds;    // collectives of the world, that it has come to
  std::atomic<int64_t> step;
  std::array<std::atomic<uint64_t>, 8> phase;  // text
};

struct ControlBlock {
  alignas(128) std::atomic<uint32_t> arrived;     // at the present barrier
  alignas(128) std::atomic<uint32_t> generation;  // of the barrier; sleepers wait for the next
  std::atomic<uint32_t> sleepers;
  alignas(128) std::atomic<uint32_t> ending;  // 0, or kEnding + exit code: all leave at once
  std::atomic<uint32_t> voice;                // 1 + local rank of the process that tells why
};

constexpr uint32_t kEnding = 0x100;

static_assert(std::atomic<uint64_t>::is_always_lock_free);

// The control block and what lies behind it: a slot of each process, two mailboxes of each.
class Control {
 public:
  static size_t bytes(int processes) {
    return sizeof(ControlBlock) + size_t(processes) * (sizeof(ProcessSlot) + 2 * kMailboxBytes);
  }
  Control(std::shared_ptr<void> memory, int processes)
      : memory_(std::move(memory)), processes_(processes) {}

  int processes() const { return processes_; }
  ControlBlock& block() const { return *static_cast<ControlBlock*>(memory_.get()); }
  ProcessSlot& slot(int local_rank) const {
    return reinterpret_cast<ProcessSlot*>(behind_block())[local_rank];
  }
  // Two each, used in turns: who has come to a barrier has read what was written before the last.
  std::byte* mailbox(int local_rank, int turn) const {
    return behind_block() + size_t(processes_) * sizeof(ProcessSlot) +
           (size_t(local_rank) * 2 + size_t(turn)) * kMailboxBytes;
  }

 private:
  std::byte* behind_block() const {
    return static_cast<std::byte*>(memory_.get()) + sizeof(ControlBlock);
  }

  std::shared_ptr<void> memory_;
  int processes_;
};

// The phase that a slot tells of: "backward pass, step 17".
void write_phase(ProcessSlot& slot, const char* phase, int64_t step);
std::string read_phase(const ProcessSlot& slot);

}  // namespace finetune

// Shared memory of a group of processes on one host: a barrier and mailboxes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace finetune {

constexpr size_t kMailboxBytes = size_t(256) << 10;

// Starts as zeros.
struct BarrierState {
  alignas(128) std::atomic<uint32_t> arrived;     // processes at the current barrier
  alignas(128) std::atomic<uint32_t> generation;  // counts barriers; sleepers wait for it to change
  std::atomic<uint32_t> sleepers;
};

class GroupMemory {
 public:
  static size_t bytes(int processes) {
    return sizeof(BarrierState) + size_t(processes) * 2 * kMailboxBytes;
  }
  explicit GroupMemory(std::shared_ptr<void> memory) : memory_(std::move(memory)) {}

  BarrierState& barrier() const { return *static_cast<BarrierState*>(memory_.get()); }
  // Each member has two mailboxes, used in turn: a process that reaches a barrier has read
  // everything written before the previous one.
  std::byte* mailbox(int member, int turn) const {
    return static_cast<std::byte*>(memory_.get()) + sizeof(BarrierState) +
           (size_t(member) * 2 + size_t(turn)) * kMailboxBytes;
  }

 private:
  std::shared_ptr<void> memory_;
};

}  // namespace finetune

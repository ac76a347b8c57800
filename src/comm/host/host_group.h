// A group of processes on one host: collectives through shared memory, without MPI. All members
// call the same functions in the same order.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/host/own_process.h"

namespace finetune {

// Shared memory of a group of processes on one host: a barrier and mailboxes.
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

class HostGroup {
 public:
  // slots: the members' local ranks in the run, in order; `own` is this process's index in it.
  // number: which of the group counters in the members' slots belong to this group.
  HostGroup(std::shared_ptr<OwnProcess> process, GroupMemory memory, std::vector<int> slots,
            int own, int number);

  OwnProcess& process() { return *process_; }
  const OwnProcess& process() const { return *process_; }
  const std::shared_ptr<OwnProcess>& shared_process() const { return process_; }
  const std::vector<int>& slots() const { return slots_; }
  int number() const { return number_; }

  void barrier();
  void all_gather(const void* mine, size_t bytes, void* all);
  void broadcast(void* data, size_t bytes, int root);
  std::vector<uint8_t> scatter(std::span<const std::vector<uint8_t>> parts);
  std::vector<std::vector<uint8_t>> gather(std::span<const uint8_t> mine);
  std::shared_ptr<void> allocate(size_t bytes);

 private:
  int size() const { return int(slots_.size()); }
  void sleep_until_not(uint32_t generation, uint64_t number);
  std::byte* mailbox(int member) const { return memory_.mailbox(member, turn_); }
  // Call next_turn() after a barrier once the mailboxes are read; it switches to the other set.
  void next_turn() { turn_ ^= 1; }

  std::shared_ptr<OwnProcess> process_;
  GroupMemory memory_;
  std::vector<int> slots_;
  int own_;
  int number_;
  int turn_ = 0;
  uint64_t barriers_ = 0;
};

}  // namespace finetune

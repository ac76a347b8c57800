// The processes of one host: collectives through shared memory, without MPI. All members call the
// same functions in the same order.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/host/control_block.h"
#include "comm/liveness.h"
#include "core/threads/spin.h"

namespace finetune {

class HostGroup {
 public:
  // names: as Liveness.
  HostGroup(Control control, int local_rank, int host, std::vector<std::string> names);

  Liveness& liveness() { return liveness_; }
  const Liveness& liveness() const { return liveness_; }
  Spin& spin() { return spin_; }
  ProcessSlot& own_slot() { return control_.slot(local_rank_); }

  void barrier();
  void all_gather(const void* mine, size_t bytes, void* all);
  void broadcast(void* data, size_t bytes, int root);
  std::vector<uint8_t> scatter(std::span<const std::vector<uint8_t>> parts);
  std::vector<std::vector<uint8_t>> gather(std::span<const uint8_t> mine);
  std::shared_ptr<void> allocate(size_t bytes);

 private:
  void sleep_until_not(uint32_t generation, uint64_t number);
  std::byte* mailbox(int local_rank) const { return control_.mailbox(local_rank, turn_); }
  // After all have written to mailboxes and before they read; next_turn() when they have read.
  void next_turn() { turn_ ^= 1; }

  Control control_;
  int local_rank_;
  std::vector<std::string> names_;
  int turn_ = 0;
  uint64_t barriers_ = 0;
  Spin spin_;
  Liveness liveness_;
};

}  // namespace finetune

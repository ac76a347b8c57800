// A link between two processes of one host: a ring buffer in shared memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "comm/host/own_process.h"
#include "comm/link.h"

namespace finetune {

// Starts as zeros. One side writes, the other reads. Each sleeps until the other's `turns` changes.
struct RingState {
  struct Side {
    alignas(128) std::atomic<uint64_t> bytes;  // bytes written or read so far
    std::atomic<uint32_t> turns;
    std::atomic<uint32_t> awaited;  // the other side sleeps, or is about to
  };
  Side writer, reader;
};

class RingLink final : public Link {
 public:
  // Bytes of memory for a link.
  static size_t bytes(size_t capacity);

  // other: local rank in the run of the other end.
  RingLink(std::shared_ptr<OwnProcess> process, std::shared_ptr<void> memory, size_t capacity,
           bool sends, int other, std::shared_ptr<int64_t> of_communicator);

  void send(const void* data, size_t bytes, const LinkMessage& message) override;
  void receive(void* data, size_t bytes, const LinkMessage& message) override;

 private:
  void write(const void* data, size_t bytes, const LinkMessage& message);
  void read(void* data, size_t bytes, const LinkMessage& message);
  void publish(RingState::Side& side);
  template <typename Ready>
  void wait(RingState::Side& other_side, const LinkMessage& message, const Ready& ready);

  std::shared_ptr<OwnProcess> process_;
  std::shared_ptr<void> memory_;
  RingState& state_;
  std::byte* ring_;
  size_t size_;  // bytes of the ring
  bool sends_;
  int other_;
  uint64_t at_ = 0;  // bytes that this end wrote or read
};

}  // namespace finetune

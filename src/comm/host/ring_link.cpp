// Sends bytes through a ring buffer in shared memory: a header with the size, then the message.
#include "comm/host/ring_link.h"

#include <algorithm>
#include <cstring>

#include "comm/host/control_block.h"
#include "core/error.h"

namespace finetune {
namespace {

// Large copies are split so that the receiver starts before the sender has finished.
constexpr size_t kCopyBytes = size_t(256) << 10;

// Size of the ring: the largest message with its header, in whole cache lines.
size_t ring_bytes(size_t capacity) {
  return (capacity + sizeof(uint64_t) + 127) / 128 * 128;
}

}  // namespace

size_t RingLink::bytes(size_t capacity) {
  return sizeof(RingState) + ring_bytes(capacity);
}

RingLink::RingLink(std::shared_ptr<OwnProcess> process, std::shared_ptr<void> memory,
                   size_t capacity, bool sends, int other, std::shared_ptr<int64_t> of_communicator)
    : Link(std::move(of_communicator)),
      process_(std::move(process)),
      memory_(std::move(memory)),
      state_(*static_cast<RingState*>(memory_.get())),
      ring_(static_cast<std::byte*>(memory_.get()) + sizeof(RingState)),
      size_(ring_bytes(capacity)),
      sends_(sends),
      other_(other) {}

void RingLink::send(const void* data, size_t bytes, const LinkMessage& message) {
  FINETUNE_CHECK(sends_);
  if (bytes == 0) return;
  const uint64_t header = bytes;
  write(&header, sizeof header, message);
  write(data, bytes, message);
  count(bytes);
}

void RingLink::receive(void* data, size_t bytes, const LinkMessage& message) {
  FINETUNE_CHECK(!sends_);
  if (bytes == 0) return;
  uint64_t header = 0;
  read(&header, sizeof header, message);
  FINETUNE_CHECK(header == bytes);
  read(data, bytes, message);
}

void RingLink::write(const void* data, size_t bytes, const LinkMessage& message) {
  const auto* from = static_cast<const std::byte*>(data);
  while (bytes > 0) {
    const auto room = [this] { return size_ - size_t(at_ - state_.reader.bytes.load()); };
    if (room() == 0) wait(state_.reader, message, [&] { return room() > 0; });
    const size_t place = size_t(at_ % size_);
    const size_t piece = std::min({bytes, room(), size_ - place, kCopyBytes});
    std::memcpy(ring_ + place, from, piece);
    at_ += piece;
    publish(state_.writer);
    from += piece;
    bytes -= piece;
  }
}

void RingLink::read(void* data, size_t bytes, const LinkMessage& message) {
  auto* to = static_cast<std::byte*>(data);
  while (bytes > 0) {
    const auto there = [this] { return size_t(state_.writer.bytes.load() - at_); };
    if (there() == 0) wait(state_.writer, message, [&] { return there() > 0; });
    const size_t place = size_t(at_ % size_);
    const size_t piece = std::min({bytes, there(), size_ - place, kCopyBytes});
    std::memcpy(to, ring_ + place, piece);
    at_ += piece;
    publish(state_.reader);
    to += piece;
    bytes -= piece;
  }
}

void RingLink::publish(RingState::Side& side) {
  side.bytes.store(at_);
  if (side.awaited.load() == 0) return;
  side.turns.fetch_add(1);
  futex_wake_all(side.turns);
}

template <typename Ready>
void RingLink::wait(RingState::Side& other_side, const LinkMessage& message, const Ready& ready) {
  if (process_->spin_until(ready)) return;
  Liveness& liveness = process_->liveness();
  const std::string pending = sends_ ? concat("is waiting to send ", message.text(), " to it")
                                     : concat("is waiting for ", message.text(), " from it");
  Wait wait(liveness, {{&other_, 1},
                       [](const ProcessSlot&) { return true; },
                       kBeyondOthers,
                       [&] { return liveness.name(other_); },
                       pending});
  while (!ready()) {
    const double slice = process_->slice();
    const uint32_t turns = other_side.turns.load();
    other_side.awaited.store(1);
    if (!ready()) futex_wait(other_side.turns, turns, slice);
    other_side.awaited.store(0);
    wait.look();
  }
}

}  // namespace finetune

// Link: ordered messages from one process to another. Inside a host it is a ring buffer in shared
// memory, between hosts MPI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/text/text.h"

namespace finetune {

// Names a message in the error line when it does not arrive: "activations of micro-batch", 3.
// `what` is a string literal; number < 0: none.
struct LinkMessage {
  const char* what;
  int64_t number = -1;

  std::string text() const { return number < 0 ? std::string(what) : concat(what, " ", number); }
};

// One end of a link. Both processes send and receive the same sizes in the same order. A message of
// 0 bytes is skipped: neither end waits. Waits end as described in communicator.h.
class Link {
 public:
  virtual ~Link() = default;

  // For the sending end. `data` may change after the return. A message up to the link's capacity
  // waits only for earlier messages to be received; a longer one waits for its receiver.
  virtual void send(const void* data, size_t bytes, const LinkMessage& message) = 0;
  // For the receiving end: waits for the message.
  virtual void receive(void* data, size_t bytes, const LinkMessage& message) = 0;

  // Payload bytes that this process sent through the link.
  int64_t bytes_sent() const { return bytes_sent_; }

 protected:
  // of_communicator: the sent-bytes counter of the link's communicator, which is updated too.
  explicit Link(std::shared_ptr<int64_t> of_communicator)
      : of_communicator_(std::move(of_communicator)) {}
  void count(size_t bytes) {
    bytes_sent_ += int64_t(bytes);
    *of_communicator_ += int64_t(bytes);
  }

 private:
  int64_t bytes_sent_ = 0;
  std::shared_ptr<int64_t> of_communicator_;
};

// A link to create between two ranks of a communicator.
struct LinkEnds {
  int from;
  int to;           // the receiver
  size_t capacity;  // bytes of the largest message that does not wait for its receiver
};

}  // namespace finetune

// Link: messages from one process to another, in order.
// On a host through a ring in shared memory, between hosts over MPI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/text/text.h"

namespace finetune {

// What a message is, for the line that ends a job in which it does not come: "activations of
// micro-batch", 3. `what` is a literal; number < 0: none.
struct LinkMessage {
  const char* what;
  int64_t number = -1;

  std::string text() const { return number < 0 ? std::string(what) : concat(what, " ", number); }
};

// One end of a link. Its two processes send and receive the same sizes in the same order. A message
// of 0 bytes is nothing: neither waits for the other. None hangs: as Communicator.
class Link {
 public:
  virtual ~Link() = default;

  // The process it comes from. `data` may change on return. A message of up to the link's capacity
  // waits only until those before it have been received; a longer one for its receiver.
  virtual void send(const void* data, size_t bytes, const LinkMessage& message) = 0;
  // The process it goes to: waits for the message.
  virtual void receive(void* data, size_t bytes, const LinkMessage& message) = 0;

  // What this process has sent through it: payload.
  int64_t bytes_sent() const { return bytes_sent_; }

 protected:
  // of_communicator: what the link's communicator has sent, which counts it too.
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

// A link to be made between two ranks of a communicator.
struct LinkEnds {
  int from;
  int to;           // another
  size_t capacity;  // bytes of the largest message that is sent without waiting for its receiver
};

}  // namespace finetune

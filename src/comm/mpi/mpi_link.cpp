// Sends from a buffer of the link, completed during waits; receives in place.
#include "comm/mpi/mpi_link.h"

#include <cstring>

namespace finetune {

MpiLink::MpiLink(std::shared_ptr<OwnProcess> process, MPI_Comm comm, End other, size_t capacity,
                 std::shared_ptr<int64_t> of_communicator)
    : Link(std::move(of_communicator)),
      process_(std::move(process)),
      comm_(comm),
      other_(std::move(other)),
      capacity_(capacity) {}

void MpiLink::send(const void* data, size_t bytes, const LinkMessage& message) {
  if (bytes == 0) return;
  const std::string pending = concat("is waiting to send ", message.text(), " to it");
  if (sent_) wait(sent_->transfers, pending);
  count(bytes);
  if (bytes > capacity_) {
    Transfers transfers(comm_, "send");
    transfers.send(data, bytes, other_.rank, other_.tag);
    return wait(transfers, pending);
  }
  // The previous message has been sent: reuse its buffer.
  auto buffer = sent_ ? std::move(sent_->data) : std::vector<std::byte>();
  buffer.resize(bytes);
  std::memcpy(buffer.data(), data, bytes);
  sent_ = std::make_shared<Sent>(Sent{std::move(buffer), Transfers(comm_, "send")});
  sent_->transfers.send(sent_->data.data(), bytes, other_.rank, other_.tag);
  process_->background().add([sent = sent_] { return !sent->transfers.ended(); });
}

void MpiLink::receive(void* data, size_t bytes, const LinkMessage& message) {
  if (bytes == 0) return;
  Transfers transfers(comm_, "receive");
  transfers.receive(data, bytes, other_.rank, other_.tag);
  wait(transfers, concat("is waiting for ", message.text(), " from it"));
}

void MpiLink::wait(Transfers& transfers, const std::string& pending) {
  transfers.wait(*process_, {{},
                             [](const ProcessSlot&) { return false; },
                             [this](int) { return other_.name; },
                             [this](int) { return other_.waits(); },
                             pending});
}

}  // namespace finetune

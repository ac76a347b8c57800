// Processes of one host, through memory that they share.
#include "comm/parallel_communicator.h"
#include "core/error.h"

namespace finetune {
namespace {

class Shared final : public ParallelCommunicator {
 public:
  using ParallelCommunicator::ParallelCommunicator;

  void barrier() override { group_.barrier(); }
  void all_gather(const void* mine, size_t bytes, void* all) override {
    group_.all_gather(mine, bytes, all);
  }
  void broadcast(void* data, size_t bytes, int root) override {
    group_.broadcast(data, bytes, root);
  }
  std::vector<uint8_t> scatter(std::span<const std::vector<uint8_t>> parts) override {
    return group_.scatter(parts);
  }
  std::vector<std::vector<uint8_t>> gather(std::span<const uint8_t> mine) override {
    return group_.gather(mine);
  }
  void exchange(std::span<const Outgoing> out, std::span<const Incoming> in) override {
    FINETUNE_CHECK(out.empty() && in.empty());
  }
};

}  // namespace

std::unique_ptr<Communicator> make_shared_communicator(Topology topology,
                                                       std::vector<std::string> names,
                                                       Control control) {
  return std::make_unique<Shared>(std::move(topology), std::move(names), std::move(control));
}

}  // namespace finetune

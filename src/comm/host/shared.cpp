// The communicator of one host's processes, through shared memory.
#include "comm/parallel_communicator.h"
#include "core/error.h"

namespace finetune {
namespace {

class Shared final : public ParallelCommunicator {
 public:
  using ParallelCommunicator::ParallelCommunicator;

  void barrier() override { group_.barrier(); }
  void all_gather(const void* mine, size_t bytes, void* all) override {
    count_for_each_other(bytes);
    group_.all_gather(mine, bytes, all);
  }
  void broadcast(void* data, size_t bytes, int root) override {
    if (rank() == root) count_for_each_other(bytes);
    group_.broadcast(data, bytes, root);
  }
  std::vector<uint8_t> scatter(std::span<const std::vector<uint8_t>> parts) override {
    count_parts(parts);
    return group_.scatter(parts);
  }
  std::vector<std::vector<uint8_t>> gather(std::span<const uint8_t> mine) override {
    if (rank() != 0) count_sent(int64_t(mine.size()));
    return group_.gather(mine);
  }
  void exchange(std::span<const Outgoing> out, std::span<const Incoming> in,
                const LinkMessage&) override {
    FINETUNE_CHECK(out.empty() && in.empty());
  }

 private:
  std::unique_ptr<Communicator> make_group(Parts parts, int) override {
    return std::make_unique<Shared>(std::move(parts));
  }
  std::unique_ptr<Link> make_remote_link(int, int, size_t) override {
    throw internal_error("a link to another host, but the run has one host only");
  }
};

}  // namespace

std::unique_ptr<Communicator> make_shared_communicator(ParallelCommunicator::Parts parts) {
  return std::make_unique<Shared>(std::move(parts));
}

}  // namespace finetune

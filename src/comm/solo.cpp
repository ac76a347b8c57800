#include "comm/communicator.h"

namespace finetune {
namespace {

class Solo final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void barrier() override {}
  int64_t maximum(int64_t value) override { return value; }
  void all_reduce(float*, int64_t) override {}
  void all_reduce(double*, int64_t) override {}
  void broadcast(void*, int64_t, int) override {}
};

}  // namespace

std::unique_ptr<Communicator> make_solo_communicator() {
  return std::make_unique<Solo>();
}

}  // namespace finetune

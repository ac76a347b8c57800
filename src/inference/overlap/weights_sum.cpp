// Sums a model's weights beside other work.
#include "inference/overlap/weights_sum.h"

#include <system_error>
#include <utility>

#include "engine/model_tensors.h"

namespace finetune {

WeightsSum::WeightsSum(ParameterTable table, std::shared_ptr<float> arena)
    : table_(std::move(table)), arena_(std::move(arena)) {
  try {
    thread_ = std::thread([this] { compute(); });
  } catch (const std::system_error&) {  // no thread is to be had
    compute();
  }
}

WeightsSum::~WeightsSum() {
  if (thread_.joinable()) thread_.join();
}

void WeightsSum::compute() noexcept {
  try {
    ArenaTensors tensors(table_, arena_.get());
    hex_ = weights_sha256(tensors);
  } catch (...) {
    failure_ = std::current_exception();
  }
  arena_.reset();
}

std::string WeightsSum::hex() {
  if (thread_.joinable()) thread_.join();
  if (failure_) std::rethrow_exception(failure_);
  return hex_;
}

}  // namespace finetune

// Sums a model's weights beside other work.
#include "inference/overlap/weights_sum.h"

#include <system_error>
#include <utility>

#include "core/threads/parallel.h"
#include "engine/model_tensors.h"

namespace finetune {

WeightsSum::WeightsSum(ParameterTable table, std::unique_ptr<WeightSource> source)
    : table_(std::move(table)), source_(std::move(source)) {
  try {
    thread_ = std::thread([this] { compute(); });
  } catch (const std::system_error&) {  // no thread could be started
    compute();
  }
}

WeightsSum::~WeightsSum() {
  if (thread_.joinable()) thread_.join();
}

void WeightsSum::compute() noexcept {
  try {
    const AloneOnThread alone;  // leaves the thread pool to inference
    const std::vector<Parameter>& parameters = table_.parameters();
    size_t read = parameters.size();
    std::vector<float> tensor;
    const auto rows = [&](size_t i, int64_t first, int64_t) {
      const Parameter& p = parameters[i];
      if (read != i) {
        tensor.resize(size_t(p.size()));
        read_tensor(*source_, p.name, p.shape, tensor.data());
        read = i;
      }
      return tensor.data() + first * (p.size() / p.shape[0]);
    };
    hex_ = safetensors_sha256(weight_shapes(table_), rows, DType::f32);
  } catch (...) {
    failure_ = std::current_exception();
  }
  source_.reset();
}

std::string WeightsSum::hex() {
  if (thread_.joinable()) thread_.join();
  if (failure_) std::rethrow_exception(failure_);
  return hex_;
}

}  // namespace finetune

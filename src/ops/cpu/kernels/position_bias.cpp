// The position bias of attention: its values by distance, and the gradient of its table.
#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/tasks.h"

namespace finetune {

void CpuBackend::position_bias(Tensor table, Tensor values) {
  FINETUNE_CHECK(table.rows == kPositionBuckets && table.cols == values.rows);
  const int64_t span = (values.cols + 1) / 2;
  cpu::for_tasks(values.rows, [&](int64_t head) {
    float* const row = values.f32() + head * values.stride;
    for (int64_t d = 0; d < values.cols; ++d) {
      row[d] = table.f32()[position_bucket(d - span + 1) * table.stride + head];
    }
  });
}

void CpuBackend::position_bias_backward(Tensor dvalues, Segments keys, Tensor dtable,
                                        bool accumulate) {
  FINETUNE_CHECK(dtable.rows == kPositionBuckets && dtable.cols == dvalues.rows);
  cpu::for_tasks(dvalues.rows, [&](int64_t head) {
    const float* const row = dvalues.f32() + head * dvalues.stride;
    double sums[kPositionBuckets] = {};
    for (int64_t b = 0; b < keys.count; ++b) {
      const int64_t first = keys.offsets[b], length = keys.offsets[b + 1] - first;
      for (int64_t d = 1 - length; d < length; ++d) {
        sums[position_bucket(d)] += double(row[2 * first + length - 1 + d]);
      }
    }
    for (int32_t k = 0; k < kPositionBuckets; ++k) {
      float& to = dtable.f32()[k * dtable.stride + head];
      to = float(sums[k] + (accumulate ? double(to) : 0));
    }
  });
}

}  // namespace finetune

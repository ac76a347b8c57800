#include "ops/cpu/machine_peaks.h"

#include <dnnl.h>
#include <omp.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

#include "core/error.h"
#include "core/parallel.h"
#include "ops/backend.h"
#include "ops/cpu/isa.h"
#include "ops/cpu/tile_gemm.h"

namespace finetune {
namespace {

// Seconds of the fastest of three calls after one that warms up.
double fastest(Clock clock, const std::function<void()>& call) {
  call();
  double best = 1e300;
  for (int i = 0; i < 3; ++i) {
    const double start = seconds_now(clock);
    call();
    best = std::min(best, seconds_now(clock) - start);
  }
  return best;
}

}  // namespace

double measure_matmul_peak(Clock clock, DType precision) {
  if (precision == DType::bf16 && multiplies_bf16(select_isa())) {
    double flop = 0;
    const double seconds = fastest(clock, [&] {
      std::vector<double> done(static_cast<size_t>(threads()));
      parallel_for(threads(), [&](int64_t i) { done[size_t(i)] = cpu::tile_spin(100'000); });
      flop = std::accumulate(done.begin(), done.end(), 0.0);
    });
    return flop / seconds;
  }
  select_isa();
  constexpr int64_t n = 2048;
  std::vector<float> a(size_t(n * n), 0.5f), b(a), c(a);
  omp_set_num_threads(threads());
  const double seconds = fastest(clock, [&] {
    const dnnl_status_t status =
        dnnl_sgemm('N', 'N', n, n, n, 1.0f, a.data(), n, b.data(), n, 0.0f, c.data(), n);
    FINETUNE_CHECK(status == dnnl_success);
  });
  return 2.0 * double(n) * double(n) * double(n) / seconds;
}

double measure_memory_peak(Clock clock) {
  constexpr int64_t count = int64_t{32} << 20;
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  const auto x = backend->allocate(size_t(count) * sizeof(float));
  const auto y = backend->allocate(size_t(count) * sizeof(float));
  const double seconds = fastest(clock, [&] {
    backend->add(vector(static_cast<float*>(x.get()), count),
                 vector(static_cast<float*>(y.get()), count));
  });
  return 3.0 * double(count) * sizeof(float) / seconds;
}

}  // namespace finetune

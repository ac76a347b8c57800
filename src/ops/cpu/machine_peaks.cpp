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

// The least of three calls, which give seconds, after one that warms up.
double fastest(const std::function<double()>& timed) {
  timed();
  double best = timed();
  for (int i = 1; i < 3; ++i) best = std::min(best, timed());
  return best;
}

double seconds_of(Clock clock, const std::function<void()>& call) {
  const double start = seconds_now(clock);
  call();
  return seconds_now(clock) - start;
}

}  // namespace

TimedArithmetic time_matmul(Clock clock, DType precision) {
  TimedArithmetic timed;
  if (precision == DType::bf16 && multiplies_bf16(select_isa())) {
    std::vector<double> done(static_cast<size_t>(threads()));
    timed.seconds = seconds_of(clock, [&] {
      parallel_for(threads(), [&](int64_t i) { done[size_t(i)] = cpu::tile_spin(100'000); });
    });
    timed.flop = std::accumulate(done.begin(), done.end(), 0.0);
    return timed;
  }
  select_isa();
  constexpr int64_t n = 2048;
  // Memory of a backend goes back at once, whatever malloc keeps.
  const auto memory = make_cpu_backend()->allocate(3 * n * n * sizeof(float));
  float* const a = static_cast<float*>(memory.get());
  float *const b = a + n * n, *const c = b + n * n;
  std::fill(a, c + n * n, 0.5f);
  omp_set_num_threads(threads());
  timed.seconds = seconds_of(clock, [&] {
    const dnnl_status_t status = dnnl_sgemm('N', 'N', n, n, n, 1.0f, a, n, b, n, 0.0f, c, n);
    FINETUNE_CHECK(status == dnnl_success);
  });
  timed.flop = 2.0 * double(n) * double(n) * double(n);
  return timed;
}

double measure_matmul_peak(Clock clock, DType precision) {
  double flop = 0;  // the same each time
  const double seconds = fastest([&] {
    const TimedArithmetic timed = time_matmul(clock, precision);
    flop = timed.flop;
    return timed.seconds;
  });
  return flop / seconds;
}

double measure_memory_peak(Clock clock) {
  constexpr int64_t count = int64_t{32} << 20;
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  const auto x = backend->allocate(size_t(count) * sizeof(float));
  const auto y = backend->allocate(size_t(count) * sizeof(float));
  const double seconds = fastest([&] {
    return seconds_of(clock, [&] {
      backend->add(vector(static_cast<float*>(x.get()), count),
                   vector(static_cast<float*>(y.get()), count));
    });
  });
  return 3.0 * double(count) * sizeof(float) / seconds;
}

}  // namespace finetune

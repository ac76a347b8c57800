// Measures this machine's matrix-product rate and memory bandwidth.
#include "ops/cpu/machine_peaks.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

#include "core/threads/parallel.h"
#include "ops/backend.h"
#include "ops/cpu/gemm/bf16_gemm.h"
#include "ops/cpu/isa.h"

namespace finetune {
namespace {

// The fastest of three timed calls (in seconds) after a warm-up.
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

TimedArithmetic time_bf16_multiplications(Clock clock) {
  select_isa();  // enables tile registers
  TimedArithmetic timed;
  std::vector<double> done(static_cast<size_t>(threads()));
  timed.seconds = seconds_of(clock, [&] {
    parallel_for(threads(), [&](int64_t i) { done[size_t(i)] = cpu::tile_spin(100'000); });
  });
  timed.flop = std::accumulate(done.begin(), done.end(), 0.0);
  return timed;
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

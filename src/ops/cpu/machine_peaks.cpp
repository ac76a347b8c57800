#include "ops/cpu/machine_peaks.h"

#include <dnnl.h>
#include <omp.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include "core/error.h"
#include "core/parallel.h"
#include "ops/cpu/isa.h"

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

double measure_matmul_peak(Clock clock) {
  select_isa();
  constexpr int64_t n = 2048;
  std::vector<float> a(size_t(n * n), 0.5f), b(a), c(a);
  omp_set_num_threads(threads());
  const double seconds = fastest(clock, [&] {
    const dnnl_status_t status = dnnl_sgemm('N', 'N', n, n, n, 1.0f, a.data(), n, b.data(), n, 0.0f,
                                            c.data(), n);
    FINETUNE_CHECK(status == dnnl_success);
  });
  return 2.0 * double(n) * double(n) * double(n) / seconds;
}

double measure_copy_peak(Clock clock) {
  constexpr int64_t bytes = int64_t{128} << 20, piece = int64_t{4} << 20;
  std::vector<char> from(size_t(bytes), 1), to(size_t(bytes), 2);
  const double seconds = fastest(clock, [&] {
    parallel_ranges(bytes, piece, [&](int64_t begin, int64_t end) {
      std::memcpy(to.data() + begin, from.data() + begin, size_t(end - begin));
    });
  });
  return 2.0 * double(bytes) / seconds;
}

}  // namespace finetune

// The yardstick of a build with oneDNN.
#include <dnnl.h>
#include <omp.h>

#include <algorithm>

#include "bench/yardstick.h"
#include "core/error.h"
#include "core/text/text.h"
#include "core/threads/parallel.h"
#include "ops/backend.h"
#include "ops/cpu/isa.h"

namespace finetune {
namespace {

dnnl_cpu_isa_t onednn_isa(Isa isa) {
  switch (isa) {
    case Isa::avx2:
      return dnnl_cpu_isa_avx2;
    case Isa::avx512:
    case Isa::avx512_bf16:
      return dnnl_cpu_isa_avx512_core_bf16;
    case Isa::amx:
      return dnnl_cpu_isa_avx512_core_amx;
  }
  return dnnl_cpu_isa_all;
}

// Must be set before oneDNN's first primitive.
void limit_instructions() {
  static const dnnl_status_t status = dnnl_set_max_cpu_isa(onednn_isa(select_isa()));
  FINETUNE_CHECK(status == dnnl_success);
}

}  // namespace

std::optional<std::string> onednn_version() {
  const dnnl_version_t* version = dnnl_version();
  return concat(version->major, ".", version->minor, ".", version->patch);
}

std::optional<TimedArithmetic> time_onednn_product(Clock clock) {
  limit_instructions();
  constexpr int64_t n = 2048;
  // Backend memory is returned to the system at once; malloc might keep it.
  const auto memory = make_cpu_backend()->allocate(3 * n * n * sizeof(float));
  float* const a = static_cast<float*>(memory.get());
  float *const b = a + n * n, *const c = b + n * n;
  std::fill(a, c + n * n, 0.5f);
  omp_set_num_threads(threads());
  const double start = seconds_now(clock);
  const dnnl_status_t status = dnnl_sgemm('N', 'N', n, n, n, 1.0f, a, n, b, n, 0.0f, c, n);
  const double seconds = seconds_now(clock) - start;
  FINETUNE_CHECK(status == dnnl_success);
  return TimedArithmetic{.flop = 2.0 * double(n) * double(n) * double(n), .seconds = seconds};
}

}  // namespace finetune

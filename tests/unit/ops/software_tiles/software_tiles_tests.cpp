// With tile registers in software, bf16 products use them.
#include <doctest/doctest.h>

#include <vector>

#include "../../shared.h"
#include "core/numeric/dtype.h"
#include "core/threads/parallel.h"
#include "ops/backend.h"
#include "ops/cpu/bf16_tiles/tile_instructions.h"
#include "ops/cpu/isa.h"

namespace finetune::test {

TEST_CASE("products of bf16 are formed in tile registers") {
  if (!multiplies_bf16(select_isa())) return skip("no AVX-512 with BF16");
  REQUIRE(select_isa() == Isa::amx);
  set_threads(1);
  const auto backend = make_cpu_backend(DType::bf16);
  std::vector<float> x(64, 2), w(64, 3), y(4);
  const int64_t before = cpu::software_tiles.products;
  backend->linear(matrix(x.data(), 2, 32), matrix(w.data(), 2, 32), {}, matrix(y.data(), 2, 2));
  CHECK(cpu::software_tiles.products > before);
  for (float sum : y) CHECK(sum == 192);
}

}  // namespace finetune::test

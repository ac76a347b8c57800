#include <cmath>

#include "core/text.h"
#include "op_case.h"

namespace finetune::test {

void add_optimizer_cases(std::vector<OpCase>& table) {
  for (int64_t n : {int64_t{1}, int64_t{33}, kNormBlock, kNormBlock + 7, 3 * kNormBlock + 100}) {
    table.push_back(OpCaseMaker("block_square_sums", concat("(1,", n, ")"), 1e-12, "sums in double")
                        .input("x", 1, n)
                        .work(double(n))
                        .run(
                            [n](Backend& backend, OpData& t) {
                              t.doubles.assign(size_t((n + kNormBlock - 1) / kNormBlock), 0.0);
                              backend.block_square_sums(t["x"], t.doubles.data());
                            },
                            {}));
    for (int64_t step : {1, 2, 1000}) {
      for (float decay : {0.0f, 0.01f}) {
        AdamW options;
        options.learning_rate = 0.05f;
        options.weight_decay = decay;
        options.step = step;
        options.gradient_scale = 0.3f;
        OpCaseMaker maker("adamw", concat("(1,", n, ") step ", step, " decay ", decay), 5e-7,
                          "a handful of float operations");
        maker.input("p", 1, n).input("g", 1, n).input("m", 1, n).input("v", 1, n);
        for (float& v : maker.get().buffers["v"].values) v = 0.01f + std::abs(v);
        table.push_back(maker.work(double(n)).run(
            [options](Backend& backend, OpData& t) {
              backend.adamw(options, t["p"], t["g"], t["m"], t["v"]);
            },
            {"p", "g", "m", "v"}));
      }
    }
  }
}

}  // namespace finetune::test

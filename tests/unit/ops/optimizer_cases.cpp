#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "op_case.h"

namespace finetune::test {
namespace {

constexpr int64_t kRows = 9;
const std::vector<int32_t> kSomeRows = {0, 2, 3, 8};

AdamW options_of(int64_t step, float decay) {
  AdamW options;
  options.learning_rate = 0.05f / float(step);
  options.weight_decay = decay;
  options.step = step;
  options.gradient_scale = 0.3f;
  return options;
}

RowList some_rows(OpData& t) {
  return {t.ints("rows"), int64_t(kSomeRows.size())};
}

// The end of an arena is a matrix in which only some rows are not zero.
OpCase sparse_square_sums(int64_t first, int64_t cols) {
  const int64_t n = first + kRows * cols;
  OpCaseMaker maker("block_square_sums", concat("(1,", n, ") rows of ", cols), 1e-12,
                    "sums in double");
  maker.input("x", 1, n).integers("rows", kSomeRows);
  std::vector<float>& x = maker.get().buffers["x"].values;
  for (int64_t r = 0; r < kRows; ++r) {
    if (std::find(kSomeRows.begin(), kSomeRows.end(), r) != kSomeRows.end()) continue;
    std::fill_n(x.begin() + first + r * cols, cols, 0.0f);
  }
  return maker.work(double(n)).run(
      [=](Backend& backend, OpData& t) {
        const size_t blocks = size_t((n + kNormBlock - 1) / kNormBlock);
        t.doubles.assign(2 * blocks, 0.0);
        backend.block_square_sums(t["x"], kNormBlock, {first, cols, some_rows(t)},
                                  t.doubles.data());
        backend.block_square_sums(t["x"], kNormBlock, {}, t.doubles.data() + blocks);
        for (size_t i = 0; i < blocks; ++i) {
          if (t.doubles[i] != t.doubles[blocks + i]) t.doubles[i] = NAN;  // not the same bits
        }
      },
      {});
}

// Three arenas in the order of a tree: b += c, a += b.
void add_merges(std::vector<OpCase>& table, int64_t cols) {
  auto maker = [&](const char* op) {
    OpCaseMaker maker(op, concat("(", kRows, ",", cols, ")"), 1.2e-7, "one rounding a sum");
    for (const char* name : {"a", "b", "c"}) maker.input(name, kRows, cols);
    return maker.integers("rows", kSomeRows).work(double(kRows * cols));
  };
  auto additions = [](OpData& t) {
    return std::vector<Addition>{{t["b"].f32(), t["c"].f32()}, {t["a"].f32(), t["b"].f32()}};
  };
  table.push_back(maker("merge").run(
      [=](Backend& backend, OpData& t) { backend.merge(additions(t), kRows * cols); }, {"a", "b"}));
  table.push_back(maker("merge_rows")
                      .run([=](Backend& backend,
                               OpData& t) { backend.merge_rows(additions(t), some_rows(t), cols); },
                           {"a", "b", "c"}));
}

void add_row_updates(std::vector<OpCase>& table, int64_t cols, float decay) {
  auto maker = [&](const char* op) {
    OpCaseMaker maker(op, concat("(", kRows, ",", cols, ") decay ", decay), 5e-7,
                      "a handful of float operations");
    maker.input("p", kRows, cols).input("g", kRows, cols).input("m", kRows, cols);
    maker.input("v", kRows, cols).integers("rows", kSomeRows).work(double(kRows * cols));
    for (float& v : maker.get().buffers["v"].values) v = 0.01f + std::abs(v);
    return maker;
  };
  table.push_back(maker("adamw_rows")
                      .run(
                          [decay](Backend& backend, OpData& t) {
                            backend.adamw_rows(options_of(3, decay), some_rows(t), t["p"], t["g"],
                                               t["m"], t["v"]);
                          },
                          {"p", "g", "m", "v"}));
  // Row 3 has no moments: it only decays.
  OpCaseMaker late = maker("adamw_catch_up");
  for (const char* moment : {"m", "v"}) {
    std::fill_n(late.get().buffers[moment].values.begin() + 3 * cols, cols, 0.0f);
  }
  late.integers("missed", {1, 0, 6, 4});
  table.push_back(late.run(
      [decay](Backend& backend, OpData& t) {
        std::vector<AdamW> steps;
        for (int64_t step = 2; step < 8; ++step) steps.push_back(options_of(step, decay));
        backend.adamw_catch_up(steps, some_rows(t), t.ints("missed"), t["p"], t["m"], t["v"]);
      },
      {"p", "m", "v"}));
}

}  // namespace

void add_optimizer_cases(std::vector<OpCase>& table) {
  for (int64_t n : {int64_t{1}, int64_t{33}, kNormBlock, kNormBlock + 7, 3 * kNormBlock + 100}) {
    table.push_back(OpCaseMaker("block_square_sums", concat("(1,", n, ")"), 1e-12, "sums in double")
                        .input("x", 1, n)
                        .work(double(n))
                        .run(
                            [n](Backend& backend, OpData& t) {
                              t.doubles.assign(size_t((n + kNormBlock - 1) / kNormBlock), 0.0);
                              backend.block_square_sums(t["x"], kNormBlock, {}, t.doubles.data());
                            },
                            {}));
    table.push_back(OpCaseMaker("block_square_sums", concat("(1,", n, ") in blocks of 384"), 1e-12,
                                "sums in double")
                        .input("x", 1, n)
                        .work(double(n))
                        .run(
                            [n](Backend& backend, OpData& t) {
                              t.doubles.assign(size_t((n + 383) / 384), 0.0);
                              backend.block_square_sums(t["x"], 384, {}, t.doubles.data());
                            },
                            {}));
    for (int64_t step : {1, 2, 1000}) {
      for (float decay : {0.0f, 0.01f}) {
        AdamW options = options_of(step, decay);
        options.learning_rate = 0.05f;
        OpCaseMaker maker("adamw", concat("(1,", n, ") step ", step, " decay ", decay), 5e-7,
                          "a handful of float operations");
        maker.input("p", 1, n).input("g", 1, n).input("m", 1, n).input("v", 1, n);
        for (float& v : maker.get().buffers["v"].values) v = 0.01f + std::abs(v);
        table.push_back(maker.work(double(n)).run(
            [options](Backend& backend, OpData& t) {
              backend.adamw(options, t["p"], t["g"], t["m"], t["v"]);
            },
            {"p", "m", "v"}));
      }
    }
  }
  for (int64_t first : {int64_t{0}, int64_t{48}, kNormBlock - 16, kNormBlock + 80}) {
    for (int64_t cols : {1, 20, 384, 30000}) table.push_back(sparse_square_sums(first, cols));
  }
  for (int64_t cols : {1, 37, 384}) {
    for (float decay : {0.0f, 0.01f}) add_row_updates(table, cols, decay);
    add_merges(table, cols);
  }
}

}  // namespace finetune::test

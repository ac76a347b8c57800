// Op table: gradient sums, step outcome and AdamW.
#include <algorithm>
#include <cmath>

#include "core/text/text.h"
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

// Calls body(pointer) on backend memory with these numbers, which afterwards are its contents.
template <typename Body>
void on_doubles(Backend& backend, std::vector<double>& host, Body&& body) {
  const size_t bytes = host.size() * sizeof(double);
  const auto memory = backend.allocate(bytes);
  backend.upload(memory.get(), host.data(), bytes);
  body(static_cast<double*>(memory.get()));
  backend.download(host.data(), memory.get(), bytes);
}

RowList some_rows(OpData& t) {
  return {t.ints("rows"), int64_t(kSomeRows.size())};
}

// The arena ends with a matrix in which only some rows are not zero.
OpCase sparse_square_sums(int64_t first, int64_t cols) {
  const int64_t n = first + kRows * cols;
  OpCaseMaker maker("block_square_sums", concat("(1,", n, ") rows of ", cols), 1e-12,
                    "sums in double");
  maker.input("x", 1, n).integers("rows", kSomeRows);
  std::vector<float>& x = maker.get().buffers["x"].values.own();
  for (int64_t r = 0; r < kRows; ++r) {
    if (std::find(kSomeRows.begin(), kSomeRows.end(), r) != kSomeRows.end()) continue;
    std::fill_n(x.begin() + first + r * cols, cols, 0.0f);
  }
  return maker.work(double(n)).run(
      [=](Backend& backend, OpData& t) {
        const size_t blocks = size_t((n + kNormBlock - 1) / kNormBlock);
        t.doubles.assign(2 * blocks, 0.0);
        on_doubles(backend, t.doubles, [&](double* sums) {
          backend.block_square_sums(t["x"], kNormBlock, {first, cols, some_rows(t)}, sums);
          backend.block_square_sums(t["x"], kNormBlock, {}, sums + blocks);
        });
        for (size_t i = 0; i < blocks; ++i) {
          if (t.doubles[i] != t.doubles[blocks + i]) t.doubles[i] = NAN;  // not the same bits
        }
      },
      {});
}

OpCase added_losses(int64_t n) {
  return OpCaseMaker("add_losses", concat("(1,", n, ")"), 1e-15, "one order of additions")
      .input("losses", 1, n, 0, 100)
      .input("weights", 1, n, 0, 1)
      .run(
          [](Backend& backend, OpData& t) {
            t.doubles.assign(2, 7.0);
            on_doubles(backend, t.doubles, [&](double* sums) {
              backend.add_losses(t["losses"], {}, false, sums);
              backend.add_losses(t["losses"], t["weights"], false, sums + 1);
              backend.add_losses(t["losses"], {}, true, sums + 1);
            });
          },
          {});
}

// The outcome of a step's sums, and the update that follows. `wrong` replaces one of the squares
// unless it is 0.
OpCase step_outcome(int64_t shards, int64_t blocks, double max_norm, double wrong) {
  constexpr int64_t kCount = 40;
  OpCaseMaker maker("step_outcome",
                    concat(shards, " shards, ", blocks, " blocks, clipped to ", max_norm,
                           wrong == 0 ? "" : ", not finite"),
                    5e-7, "a handful of float operations");
  for (const char* name : {"p", "g", "m", "v"}) maker.input(name, 1, kCount);
  for (float& v : maker.get().buffers["v"].values.own()) v = 0.01f + std::abs(v);
  for (const char* name : {"rows of p", "rows of g", "rows of m", "rows of v"}) {
    maker.constant(name, kRows, 3, 0.5f);
  }
  maker.integers("rows", kSomeRows);
  return maker.run(
      [=](Backend& backend, OpData& t) {
        std::vector<double> terms(size_t(shards + blocks));
        for (size_t i = 0; i < terms.size(); ++i) terms[i] = 1.0 / double(i + 3) + 1e-7 * double(i);
        if (wrong != 0) terms.back() = wrong;
        const std::vector<double> stop_requests = {0, 85, 3};
        terms.insert(terms.end(), stop_requests.begin(), stop_requests.begin() + blocks % 4);
        const auto memory = backend.allocate(sizeof(StepOutcome));
        auto* outcome = static_cast<StepOutcome*>(memory.get());
        AdamW options = options_of(3, 0.01f);
        options.gradient_scale = 1e9f;  // not to be read
        options.outcome = outcome;
        on_doubles(backend, terms, [&](double* sums) {
          backend.step_outcome({sums, shards, 7.0, sums + shards, blocks, max_norm,
                                sums + shards + blocks, blocks % 4},
                               outcome);
        });
        backend.adamw(options, t["p"], t["g"], t["m"], t["v"]);
        backend.adamw_rows(options, some_rows(t), t["rows of p"], t["rows of g"], t["rows of m"],
                           t["rows of v"]);
        backend.start_download(outcome, sizeof *outcome);
        constexpr int64_t kFloats = sizeof *outcome / sizeof(float);
        // the copy was made earlier
        backend.fill_zero(vector(static_cast<float*>(memory.get()), kFloats));
        StepOutcome result;
        backend.finish_download(&result, sizeof result);
        t.doubles = {result.loss, double(result.gradient_scale), double(result.finite),
                     double(result.stop_request)};
        if (result.finite) t.doubles.push_back(result.gradient_norm);
      },
      {"p", "m", "v", "rows of p", "rows of g", "rows of m", "rows of v"});
}

// Parts of all sizes; elements between them stay.
OpCase updated_parts() {
  constexpr int64_t kCount = 9000;
  OpCaseMaker maker("adamw_parts", concat("(1,", kCount, ")"), 5e-7,
                    "a handful of float operations");
  for (const char* name : {"p", "g", "m", "v"}) maker.input(name, 1, kCount);
  for (float& v : maker.get().buffers["v"].values.own()) v = 0.01f + std::abs(v);
  return maker.run(
      [](Backend& backend, OpData& t) {
        std::vector<AdamWPart> parts;
        int64_t begin = 3;
        for (int64_t count : {1, 0, 2048, 5, 2049, 300, 4096}) {
          parts.push_back(
              {options_of(int64_t(parts.size()) + 1, count % 2 == 0 ? 0.01f : 0.0f), begin, count});
          begin += count + (count == 5 ? 70 : 0);
        }
        backend.adamw_parts(parts, t["p"], t["g"], t["m"], t["v"]);
      },
      {"p", "m", "v"});
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
    for (float& v : maker.get().buffers["v"].values.own()) v = 0.01f + std::abs(v);
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
    std::fill_n(late.get().buffers[moment].values.own().begin() + 3 * cols, cols, 0.0f);
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
                              on_doubles(backend, t.doubles, [&](double* sums) {
                                backend.block_square_sums(t["x"], kNormBlock, {}, sums);
                              });
                            },
                            {}));
    table.push_back(OpCaseMaker("block_square_sums", concat("(1,", n, ") in blocks of 384"), 1e-12,
                                "sums in double")
                        .input("x", 1, n)
                        .work(double(n))
                        .run(
                            [n](Backend& backend, OpData& t) {
                              t.doubles.assign(size_t((n + 383) / 384), 0.0);
                              on_doubles(backend, t.doubles, [&](double* sums) {
                                backend.block_square_sums(t["x"], 384, {}, sums);
                              });
                            },
                            {}));
    for (int64_t step : {1, 2, 1000}) {
      for (float decay : {0.0f, 0.01f}) {
        AdamW options = options_of(step, decay);
        options.learning_rate = 0.05f;
        OpCaseMaker maker("adamw", concat("(1,", n, ") step ", step, " decay ", decay), 5e-7,
                          "a handful of float operations");
        maker.input("p", 1, n).input("g", 1, n).input("m", 1, n).input("v", 1, n);
        for (float& v : maker.get().buffers["v"].values.own()) v = 0.01f + std::abs(v);
        table.push_back(maker.work(double(n)).run(
            [options](Backend& backend, OpData& t) {
              backend.adamw(options, t["p"], t["g"], t["m"], t["v"]);
            },
            {"p", "m", "v"}));
      }
    }
  }
  table.push_back(updated_parts());
  for (int64_t n : {0, 1, 31, 256, 700}) table.push_back(added_losses(n));
  for (int64_t shards : {1, 3, 8}) {
    for (int64_t blocks : {1, 2, 7, 64, 1000, 1024, 1025, 2047, 2500, 20001}) {
      table.push_back(step_outcome(shards, blocks, 0.5, 0));
    }
    table.push_back(step_outcome(shards, 5, 0, 0));
    table.push_back(step_outcome(shards, 5, 1e6, 0));
    table.push_back(step_outcome(shards, 5, 1, INFINITY));
    table.push_back(step_outcome(shards, 5, 1, NAN));
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

// Lazy row updates against updates in every step, bit for bit.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "core/numeric/philox.h"
#include "core/threads/parallel.h"
#include "train/lazy_rows.h"

using namespace finetune;

namespace {

struct RowSetting {
  double weight_decay = 0.01;
  double epsilon = 1e-8;
  int64_t rows = 300;
  int64_t cols = 37;
  int steps = 700;
};

double draw(uint32_t stream, uint32_t step, uint32_t i) {
  return unit_interval(philox({17, 4}, {stream, step, i, 0})[0]);
}

// Weights, gradients and moments, with a vector of other parameters before the matrix.
struct Arenas {
  static constexpr int64_t kBefore = kNormBlock - 48;
  Arenas(Backend& backend, const RowSetting& s) : setting(s), backend(backend) {
    for (auto& arena : memory) arena = backend.allocate(size_t(size()) * sizeof(float));
  }
  int64_t size() const { return kBefore + (setting.rows * setting.cols + 15) / 16 * 16; }
  float* data(int arena) const { return static_cast<float*>(memory[arena].get()); }
  Tensor words(int arena) const {
    return matrix(data(arena) + kBefore, setting.rows, setting.cols);
  }
  bool operator==(const Arenas& other) const {
    for (int i = 0; i < 4; ++i) {
      if (std::memcmp(data(i), other.data(i), size_t(size()) * sizeof(float)) != 0) return false;
    }
    return true;
  }

  RowSetting setting;
  Backend& backend;
  std::shared_ptr<void> memory[4];  // weights, gradients, m, v
};

// Rows that occur never, once, often or always; unsorted and repeated within a step.
std::vector<int32_t> rows_of(int step, int64_t rows) {
  std::vector<int32_t> out = {5, 0};
  for (int i = 0; i < 12; ++i) {
    const double u = draw(1, uint32_t(step), uint32_t(i));
    out.push_back(int32_t(std::exp(u * std::log(double(rows) / 2))));
  }
  if (step % 97 == 3) out.push_back(int32_t(rows - 1 - step / 97));
  if (step % 211 == 0) out.push_back(int32_t(rows - 20));
  return out;
}

AdamW options_of(int step, const RowSetting& s) {
  AdamW options;
  options.step = step + 1;
  options.weight_decay = float(s.weight_decay);
  options.epsilon = float(s.epsilon);
  options.learning_rate = float(2e-2 * std::abs(1.0 - step / 500.0));  // 0 at step 500
  options.gradient_scale = float(0.2 + draw(2, uint32_t(step), 0));
  return options;
}

void add_gradients(const Arenas& arenas, int step) {
  float* before = arenas.data(1);
  for (int i = 0; i < 64; ++i) before[i * 7] += float(draw(3, uint32_t(step), uint32_t(i)) - 0.5);
  for (int32_t row : rows_of(step, arenas.setting.rows)) {
    float* g = arenas.data(1) + Arenas::kBefore + row * arenas.setting.cols;
    for (int64_t c = 0; c < arenas.setting.cols; ++c) {
      const double u = draw(4, uint32_t(step), uint32_t(row * 1000 + c)) - 0.5;
      // Of widely different size: some moments vanish soon, others persist.
      g[c] += float(u * std::pow(10.0, -double((row + c) % 23)));
    }
  }
}

void fill_weights(const Arenas& arenas) {
  float* w = arenas.data(0);
  for (int64_t i = 0; i < arenas.size(); ++i) {
    w[i] = float(draw(5, 0, uint32_t(i)) - 0.5);
    if (i % 11 == 0) w[i] *= 1e-37f;
    if (i % 57 == 0) w[i] = i % 2 ? 0.0f : -0.0f;
    if (i % 61 == 0) w[i] = 1e-41f;  // denormal
  }
}

void compare(Backend& backend, const RowSetting& s, int settle_every) {
  Arenas eager(backend, s), lazy(backend, s);
  fill_weights(eager);
  fill_weights(lazy);
  LazyRows rows(backend, lazy.words(0), lazy.words(2), lazy.words(3));
  std::vector<double> eager_sums, lazy_sums;
  auto flat = [](const Arenas& arenas, int arena, int64_t begin, int64_t end) {
    return vector(arenas.data(arena) + begin, end - begin);
  };
  auto update = [&](const AdamW& options, const Arenas& a, int64_t begin, int64_t end) {
    backend.adamw(options, flat(a, 0, begin, end), flat(a, 1, begin, end), flat(a, 2, begin, end),
                  flat(a, 3, begin, end));
    backend.fill_zero(flat(a, 1, begin, end));
  };
  for (int step = 0; step < s.steps; ++step) {
    CAPTURE(step);
    const std::vector<int32_t> ids = rows_of(step, s.rows);
    rows.begin_step();
    rows.need(std::span(ids).first(3));
    rows.need(std::span(ids).subspan(3));
    rows.catch_up();
    bool current = true;  // for the forward pass
    for (int32_t id : ids) {
      const int64_t at = Arenas::kBefore + id * s.cols;
      current &= std::memcmp(eager.data(0) + at, lazy.data(0) + at, size_t(s.cols) * 4) == 0;
    }
    REQUIRE(current);
    add_gradients(eager, step);
    add_gradients(lazy, step);
    const SparseRows sparse{Arenas::kBefore, s.cols, rows.needed()};
    eager_sums.assign(size_t((eager.size() + kNormBlock - 1) / kNormBlock), 0.0);
    lazy_sums = eager_sums;
    backend.block_square_sums(vector(eager.data(1), eager.size()), kNormBlock, {},
                              eager_sums.data());
    backend.block_square_sums(vector(lazy.data(1), lazy.size()), kNormBlock, sparse,
                              lazy_sums.data());
    REQUIRE(eager_sums == lazy_sums);
    if (step % 50 == 49) {  // a skipped step: its gradients are discarded
      for (Arenas* a : {&eager, &lazy}) backend.fill_zero(vector(a->data(1), a->size()));
      continue;
    }
    const AdamW options = options_of(step, s);
    update(options, eager, 0, Arenas::kBefore);
    update(options, lazy, 0, Arenas::kBefore);
    update(options, eager, Arenas::kBefore, Arenas::kBefore + s.rows * s.cols);
    rows.update(options, lazy.words(1));
    if (settle_every > 0 && step % settle_every == settle_every - 1) {
      rows.settle();
      REQUIRE(eager == lazy);
    }
  }
  CHECK(!(eager == lazy));
  rows.settle();
  CHECK(eager == lazy);
}

}  // namespace

TEST_CASE("late updates give the bits of eager ones") {
  auto backend = make_cpu_backend();
  for (double decay : {0.0, 0.01, 3.0}) {
    CAPTURE(decay);
    RowSetting setting;
    setting.weight_decay = decay;
    compare(*backend, setting, 0);
    compare(*backend, setting, 131);
  }
}

TEST_CASE("late updates: rows of other widths, more rows than a part takes, several threads") {
  auto backend = make_cpu_backend();
  const int before = threads();
  set_threads(3);
  for (int64_t cols : {1, 16, 128, 384}) {
    CAPTURE(cols);
    RowSetting setting;
    setting.cols = cols;
    setting.steps = cols > 100 ? 150 : 400;
    setting.rows = cols > 100 ? 400 : 1000;
    compare(*backend, setting, 0);
  }
  set_threads(before);
}

TEST_CASE("late updates if the division by epsilon matters") {
  RowSetting setting;
  setting.epsilon = 1e-40;  // 0 as the kernels see it: 0 / 0, as in the eager update
  setting.steps = 20;
  compare(*make_cpu_backend(), setting, 0);
}

TEST_CASE("late updates hold for the reference as well") {
  RowSetting setting;
  setting.steps = 60;
  compare(*make_reference_backend(), setting, 0);
}

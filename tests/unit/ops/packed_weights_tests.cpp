// Packed weights: weights that the CPU backend packs into the memory of gradients
// (AdamWPart::cols).
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "core/numeric/dtype.h"
#include "ops/backend.h"
#include "ops/cpu/gemm/packed_weights.h"

namespace finetune::test {
namespace {

// Matrices adjacent in arenas, and operands of products. Two Updated have the same values.
struct Updated {
  Updated(std::vector<int64_t> rows_, int64_t cols_) : rows(std::move(rows_)), cols(cols_) {
    for (int64_t r : rows) count += r * cols;
    for (auto* arena : {&w, &g, &m, &v}) {
      *arena = backend->allocate(size_t(count) * sizeof(float));
      for (int64_t i = 0; i < count; ++i) floats(*arena)[i] = 1.5f + std::sin(float(i));
    }
  }

  static float* floats(const std::shared_ptr<void>& arena) {
    return static_cast<float*>(arena.get());
  }
  Tensor arena(const std::shared_ptr<void>& x) const { return vector(floats(x), count); }
  // All matrices as one, or some of its rows.
  Tensor rows_of(const std::shared_ptr<void>& x) const {
    return matrix(floats(x), count / cols, cols);
  }
  Tensor weights() const { return rows_of(w); }
  Tensor weights(int64_t begin, int64_t rows_) const { return weights().rows_from(begin, rows_); }

  void update(bool pack) {
    std::vector<AdamWPart> parts;
    int64_t begin = 0;
    for (int64_t r : rows) {
      AdamW options;
      options.learning_rate = 0.01f;
      parts.push_back({options, begin, r * cols, pack ? cols : 0});
      begin += r * cols;
    }
    backend->adamw_parts(parts, arena(w), arena(g), arena(m), arena(v));
  }

  // For this number of tokens: x * w^T + bias, dy * w, and that added to something.
  std::vector<std::vector<float>> products(Tensor of, int64_t tokens, DType type) {
    const int64_t out = of.rows;
    auto values = [&](int64_t r, int64_t c) {
      auto memory = backend->allocate(size_t(r * c) * sizeof(float));
      for (int64_t i = 0; i < r * c; ++i) {
        const float value = std::cos(float(i % 1009));
        if (type == DType::bf16) {
          static_cast<bfloat16*>(memory.get())[i] = bfloat16(value);
        } else {
          floats(memory)[i] = value;
        }
      }
      return memory;
    };
    const auto x = values(tokens, cols), dy = values(tokens, out);
    const auto y = backend->allocate(size_t(tokens * out) * sizeof(float));
    const auto dx = backend->allocate(size_t(tokens * cols) * sizeof(float));
    std::vector<float> bias(size_t(out), 0.25f);
    auto typed = [&](const std::shared_ptr<void>& memory, int64_t c) {
      return Tensor{memory.get(), type, tokens, c, c};
    };
    std::vector<std::vector<float>> results;
    auto take = [&](const std::shared_ptr<void>& memory, int64_t c) {
      results.emplace_back(floats(memory), floats(memory) + tokens * c);
    };
    backend->linear(typed(x, cols), of, vector(bias.data(), out), matrix(floats(y), tokens, out));
    take(y, out);
    for (bool accumulate : {false, true}) {
      backend->linear_backward_input(typed(dy, out), of, matrix(floats(dx), tokens, cols),
                                     accumulate);
      take(dx, cols);
    }
    return results;
  }

  // Whether products read the packed copies of these rows: weights changed without telling the
  // backend then have no effect.
  bool reads_copy(int64_t begin, int64_t rows_) {
    const Tensor of = weights(begin, rows_);
    const auto before = products(of, 3, DType::f32);
    const float saved = of.f32()[0];
    of.f32()[0] += 100;
    const bool same = products(of, 3, DType::f32) == before;
    of.f32()[0] = saved;
    return same;
  }

  std::unique_ptr<Backend> backend = make_cpu_backend(DType::bf16);
  std::vector<int64_t> rows;
  int64_t cols, count = 0;
  std::shared_ptr<void> w, g, m, v;
};

using Pairs = std::vector<std::pair<int64_t, int64_t>>;

bool packs() {
  if (cpu_multiplies_bf16()) return true;
  MESSAGE("skipped: weights are packed where the processor multiplies bf16");
  return false;
}

}  // namespace

TEST_CASE("products with weights that are packed have the bits of those that are not") {
  for (const auto& sizes : Pairs{{32, 32}, {96, 64}, {64, 416}, {416, 96}}) {
    const int64_t out = sizes.first, in = sizes.second;
    Updated packed({out}, in), plain({out}, in);
    packed.update(true);
    plain.update(false);
    for (int64_t tokens : {1, 15, 33, 100, 600, 1100}) {
      for (DType type : {DType::f32, DType::bf16}) {
        CAPTURE(out);
        CAPTURE(in);
        CAPTURE(tokens);
        CAPTURE(int(type));
        CHECK(packed.products(packed.weights(), tokens, type) ==
              plain.products(plain.weights(), tokens, type));
      }
    }
    CHECK(packed.reads_copy(0, out) == cpu_multiplies_bf16());
    CHECK_FALSE(plain.reads_copy(0, out));
    // A second update reads the gradients again.
    for (Updated* each : {&packed, &plain}) {
      for (int64_t i = 0; i < each->count; ++i) Updated::floats(each->g)[i] = std::cos(float(i));
      each->update(each == &packed);
    }
    CHECK(packed.products(packed.weights(), 40, DType::bf16) ==
          plain.products(plain.weights(), 40, DType::bf16));
  }
}

TEST_CASE("matrices that follow each other are packed as one, and rows of them") {
  if (!packs()) return;
  Updated packed({64, 64, 64}, 64), plain({64, 64, 64}, 64);
  packed.update(true);
  plain.update(false);
  struct Rows {
    int64_t begin, count;
    bool whole_groups;
  };
  for (const Rows& rows :
       {Rows{0, 192, true}, Rows{0, 64, true}, Rows{64, 128, true}, Rows{32, 96, true},
        Rows{16, 32, false}, Rows{1, 191, false}, Rows{0, 40, false}, Rows{32, 95, false}}) {
    CAPTURE(rows.begin);
    CAPTURE(rows.count);
    CHECK(packed.reads_copy(rows.begin, rows.count) == rows.whole_groups);
    CHECK(packed.products(packed.weights(rows.begin, rows.count), 50, DType::bf16) ==
          plain.products(plain.weights(rows.begin, rows.count), 50, DType::bf16));
  }
}

TEST_CASE("written memory is no longer packed") {
  if (!packs()) return;
  struct Write {
    const char* name;
    std::function<void(Updated&)> write;
    bool first, second;  // whether the matrices are packed afterwards
  };
  const Write writes[] = {
      {"gradient of the weights",
       [](Updated& u) {
         std::vector<float> dy(64, 1), x(64, 1);
         u.backend->linear_backward_weight(matrix(dy.data(), 1, 64), matrix(x.data(), 1, 64),
                                           u.rows_of(u.g).rows_from(64, 64), {}, false);
       },
       true, false},
      {"zeros in gradients",
       [](Updated& u) { u.backend->fill_zero(vector(Updated::floats(u.g), 1)); }, false, true},
      {"uploaded weights",
       [](Updated& u) {
         const float one = 1;
         u.backend->upload(Updated::floats(u.w) + u.count - 1, &one, sizeof one);
       },
       true, false},
      {"merged weights",
       [](Updated& u) {
         std::vector<float> more(64, 1);
         const Addition addition{Updated::floats(u.w), more.data()};
         u.backend->merge({&addition, 1}, 64);
       },
       false, true},
      {"an update that does not happen",
       [](Updated& u) {
         const StepOutcome outcome{.finite = 0};
         AdamW options;
         options.outcome = &outcome;
         const AdamWPart part{options, 0, 64 * 64, 64};
         u.backend->adamw_parts({&part, 1}, u.arena(u.w), u.arena(u.g), u.arena(u.m), u.arena(u.v));
       },
       true, true},
      {"rows that catch up",
       [](Updated& u) {
         const int32_t row = 0, missed = 1;
         const AdamW step;
         auto first = [&](const std::shared_ptr<void>& x) { return u.rows_of(x).rows_from(0, 64); };
         u.backend->adamw_catch_up({&step, 1}, {&row, 1}, &missed, first(u.w), first(u.m),
                                   first(u.v));
       },
       false, true},
      {"weights that are forgotten", [](Updated& u) { u.backend->forget_packed(); }, false, false},
      {"an update that packs nothing", [](Updated& u) { u.update(false); }, false, false},
      {"an update of rows",
       [](Updated& u) {
         const int32_t row = 64;
         u.backend->adamw_rows({}, {&row, 1}, u.rows_of(u.w), u.rows_of(u.g), u.rows_of(u.m),
                               u.rows_of(u.v));
       },
       false, false},
  };
  for (const Write& each : writes) {
    CAPTURE(each.name);
    Updated u({64, 64}, 64);
    u.update(true);
    REQUIRE(u.reads_copy(0, 64));
    REQUIRE(u.reads_copy(64, 64));
    REQUIRE(u.reads_copy(0, 128));
    each.write(u);
    CHECK(u.reads_copy(0, 64) == each.first);
    CHECK(u.reads_copy(64, 64) == each.second);
    CHECK(u.reads_copy(0, 128) == (each.first && each.second));
  }
}

TEST_CASE("weights of other shapes, and fp32's, are not packed") {
  for (const auto& sizes : Pairs{{24, 64}, {64, 48}, {33, 33}}) {
    const int64_t rows = sizes.first, cols = sizes.second;
    CAPTURE(rows);
    CAPTURE(cols);
    Updated u({rows}, cols);
    u.update(true);
    CHECK_FALSE(u.reads_copy(0, rows));
  }
  Updated u({64}, 64);
  u.backend = make_cpu_backend(DType::f32);
  const std::vector<float> gradients(Updated::floats(u.g), Updated::floats(u.g) + u.count);
  u.update(true);
  CHECK(std::equal(gradients.begin(), gradients.end(), Updated::floats(u.g)));
}

TEST_CASE("packed weights are found by their memory") {
  constexpr int64_t kSize = 64 * 64;
  // Adjacent both in w and in their packed places.
  std::vector<float> w(2 * kSize), place(2 * kSize), other(2 * kSize);
  auto of = [](std::vector<float>& x, int64_t begin, int64_t rows, int64_t cols) {
    return matrix(x.data() + begin, rows, cols);
  };
  auto packed = [](const float* at) { return reinterpret_cast<const uint16_t*>(at); };
  cpu::PackedWeights table;
  CHECK(table.find(of(w, 0, 64, 64)) == nullptr);
  table.pack(w.data(), 64, 64, place.data());
  CHECK(table.find(of(w, 0, 64, 64)) == packed(place.data()));
  CHECK(table.find(of(w, 32 * 64, 32, 64)) == packed(place.data() + 32 * 64));
  SUBCASE("not in other shapes, types and places") {
    CHECK(table.find(of(w, 0, 64, 32)) == nullptr);
    CHECK(table.find(of(w, 32, 32, 64)) == nullptr);  // no group begins there
    CHECK(table.find(of(w, 0, 40, 64)) == nullptr);   // nor ends there
    CHECK(table.find(of(other, 0, 64, 64)) == nullptr);
    CHECK(table.find({w.data(), DType::f32, 32, 64, 128}) == nullptr);  // with gaps
    CHECK(table.find({w.data(), DType::bf16, 64, 64, 64}) == nullptr);
    CHECK(table.find({w.data(), DType::f32, 64, 0, 0}) == nullptr);
    CHECK(table.find(of(w, 0, 96, 64)) == nullptr);        // beyond the end
    CHECK(table.find(of(w, 64 * 64, 32, 64)) == nullptr);  // behind it
  }
  SUBCASE("another shape in the same memory takes its place") {
    for (float* at : {place.data(), other.data()}) {
      table.pack(w.data(), 128, 32, at);
      CHECK(table.find(of(w, 0, 64, 64)) == nullptr);
      CHECK(table.find(of(w, 0, 128, 32)) == packed(at));
      table.pack(w.data(), 64, 64, place.data());
      CHECK(table.find(of(w, 0, 128, 32)) == nullptr);
    }
  }
  SUBCASE("so does a matrix that begins within it") {
    table.pack(w.data() + 32 * 64, 32, 64, other.data());
    CHECK(table.find(of(w, 0, 64, 64)) == nullptr);
    CHECK(table.find(of(w, 32 * 64, 32, 64)) == packed(other.data()));
    table.pack(w.data(), 64, 64, place.data());
    CHECK(table.find(of(w, 32 * 64, 32, 64)) == packed(place.data() + 32 * 64));
  }
  SUBCASE("and the same weights elsewhere") {
    table.pack(w.data(), 64, 64, other.data());
    CHECK(table.find(of(w, 0, 64, 64)) == packed(other.data()));
  }
  SUBCASE("and other weights at the same place") {
    table.pack(other.data(), 64, 64, place.data());
    CHECK(table.find(of(w, 0, 64, 64)) == nullptr);
    CHECK(table.find(of(other, 0, 64, 64)) == packed(place.data()));
    table.pack(w.data(), 64, 64, place.data());
    CHECK(table.find(of(other, 0, 64, 64)) == nullptr);
    CHECK(table.find(of(w, 0, 64, 64)) == packed(place.data()));
  }
  SUBCASE("neighbours are one matrix where their packed groups are neighbours too") {
    table.pack(w.data() + kSize, 32, 64, place.data() + kSize);
    CHECK(table.find(of(w, 0, 96, 64)) == packed(place.data()));
    table.pack(w.data() + kSize, 32, 64, other.data());
    CHECK(table.find(of(w, 0, 96, 64)) == nullptr);
  }
  SUBCASE("and nothing is between them") {
    table.pack(w.data() + kSize + 32 * 64, 32, 64, place.data() + kSize + 32 * 64);
    CHECK(table.find(of(w, 0, 128, 64)) == nullptr);
    table.pack(w.data() + kSize, 32, 64, place.data() + kSize);
    CHECK(table.find(of(w, 0, 128, 64)) == packed(place.data()));
  }
  SUBCASE("bytes beside it are its neighbours'") {
    table.written(w.data() + kSize, 4);
    table.written(place.data() + kSize, 4);
    CHECK(table.find(of(w, 0, 64, 64)) != nullptr);
    table.written(w.data() + kSize - 1, 4);
    CHECK(table.find(of(w, 0, 64, 64)) == nullptr);
  }
}

TEST_CASE("weights are packed in whole groups at the beginning of a line of memory") {
  alignas(64) const float place[32] = {};
  CHECK(cpu::PackedWeights::fits(32, 64, place));
  CHECK_FALSE(cpu::PackedWeights::fits(32, 64, place + 1));
  CHECK_FALSE(cpu::PackedWeights::fits(33, 64, place));
  CHECK_FALSE(cpu::PackedWeights::fits(32, 65, place));
}

}  // namespace finetune::test

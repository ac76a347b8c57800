// Matrix products, attention and whole layers on memory that ends at inaccessible pages. Tiles
// (ops/cpu/encoder_layer/tile_layer.h) may read beyond their operands, and no sanitizer sees AMX
// loads. Scratch memory starts as NaN, so that reading before writing is visible.
#include <doctest/doctest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "../shared.h"
#include "core/numeric/dtype.h"
#include "core/threads/parallel.h"
#include "ops/cpu/attention/bf16_attention.h"
#include "ops/cpu/encoder_layer/tile_layer.h"
#include "ops/cpu/gemm/bf16_gemm.h"
#include "ops/cpu/gemm/gemm.h"
#include "ops/cpu/tasks.h"

namespace finetune {
namespace {

constexpr size_t kPage = 4096;

// `bytes` of memory, filled with NaN, between two inaccessible pages; it ends at the second one, up
// to `alignment`.
class Guarded {
 public:
  Guarded() = default;
  Guarded(size_t bytes, size_t alignment) { reset(bytes, alignment); }
  ~Guarded() { release(); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  Guarded(Guarded&& other) noexcept
      : all_(std::exchange(other.all_, nullptr)), data_(other.data_), size_(other.size_) {}

  void reset(size_t bytes, size_t alignment) {
    release();
    size_ = (bytes + kPage - 1) / kPage * kPage + 2 * kPage;
    void* all = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) throw std::bad_alloc();
    all_ = static_cast<char*>(all);
    std::memset(all_, 0xFF, size_);
    mprotect(all_, kPage, PROT_NONE);
    mprotect(all_ + size_ - kPage, kPage, PROT_NONE);
    data_ = all_ + size_ - kPage - (bytes + alignment - 1) / alignment * alignment;
  }
  float* floats() const { return reinterpret_cast<float*>(data_); }
  bfloat16* bf16() const { return reinterpret_cast<bfloat16*>(data_); }
  // Nothing has been written to it.
  bool begins_whole() const {
    return std::all_of(all_ + kPage, data_, [](char c) { return c == char(0xFF); });
  }

 private:
  void release() {
    if (all_ != nullptr) munmap(all_, size_);
    all_ = nullptr;
  }
  char* all_ = nullptr;
  char* data_ = nullptr;
  size_t size_ = 0;
};

class Matrix {
 public:
  Matrix(int64_t rows, int64_t cols, float range)
      : memory_(size_t(rows * cols) * sizeof(float), sizeof(float)),
        view(matrix(memory_.floats(), rows, cols)) {
    for (int64_t i = 0; i < rows * cols; ++i) {
      memory_.floats()[i] = range * std::sin(float(i) * 1.7f + float(cols));
    }
  }
  bool begins_whole() const { return memory_.begins_whole(); }

 private:
  Guarded memory_;

 public:
  Tensor view;
};

class Bf16Matrix {
 public:
  Bf16Matrix(int64_t rows, int64_t cols)
      : memory_(size_t(rows * cols) * sizeof(bfloat16), sizeof(bfloat16)),
        view{memory_.bf16(), DType::bf16, rows, cols, cols} {}
  bfloat16& operator[](int64_t i) { return memory_.bf16()[i]; }

 private:
  Guarded memory_;

 public:
  Tensor view;
};

// Packed sequences of these lengths, with a query for each token or, as in the last layer of
// classification, for the first token.
class Sequences {
 public:
  Sequences(const std::vector<int32_t>& lengths, bool first_only) {
    for (int32_t n : lengths) {
      const int32_t queries = first_only ? 1 : n;
      keys_.push_back(keys_.back() + n);
      queries_.push_back(queries_.back() + queries);
      longest_ = std::max<int64_t>(longest_, n);
      most_queries_ = std::max<int64_t>(most_queries_, queries);
    }
  }
  int64_t tokens() const { return keys_.back(); }
  int64_t rows() const { return queries_.back(); }
  AttentionShape shape(int64_t heads, int64_t size) const {
    const int64_t count = int64_t(keys_.size()) - 1;
    return {heads,
            size,
            float(1 / std::sqrt(double(size))),
            {count, most_queries_, queries_.data()},
            {count, longest_, keys_.data()},
            nullptr};
  }

 private:
  std::vector<int32_t> keys_{0}, queries_{0};
  int64_t longest_ = 0, most_queries_ = 0;
};

// The ways of multiplying on this machine: vector registers, tile registers.
std::vector<bool> ways() {
  if (!__builtin_cpu_supports("avx512bf16") || !__builtin_cpu_supports("avx512dq")) return {};
  if (!cpu::enable_tile_registers()) return {false};
  return {false, true};
}

// check() with each of them.
void in_every_way(void (*check)()) {
  const std::vector<bool> all = ways();
  if (all.empty()) return test::skip("no AVX-512 with BF16");
  for (const bool registers : all) {
    INFO((registers ? "tile" : "vector"), " registers");
    cpu::use_tile_registers(registers);
    check();
  }
  set_threads(1);
}

// The first of `count` numbers that is not finite; 0: all are.
int64_t not_finite(Bf16Matrix& x) {
  int64_t count = 0;
  for (int64_t i = 0; i < x.view.size(); ++i) count += !std::isfinite(float(x[i]));
  return count;
}

}  // namespace

// Replaces scratch.cpp.
float* cpu::scratch(Scratch use, int64_t floats) {
  static thread_local Guarded memory[3];
  memory[int(use)].reset(size_t(floats) * sizeof(float), 64);
  return memory[int(use)].floats();
}

static void check_self_attention() {
  struct Heads {
    int64_t count, size;
  };
  const std::vector<std::vector<int32_t>> all_lengths = {{1},
                                                         {16},
                                                         {17, 1, 33},
                                                         {512},
                                                         {31, 32, 33, 2},
                                                         {171, 384, 9},
                                                         {400, 400, 1},
                                                         std::vector<int32_t>(70, 13)};
  for (Heads heads : {Heads{1, 32}, {3, 64}, {1, 128}, {2, 96}, {16, 64}}) {
    const int64_t h = heads.count * heads.size;
    const Matrix weight(3 * h, h, 2 / std::sqrt(float(h))), bias(1, 3 * h, 1);
    for (const auto& lengths : all_lengths) {
      for (bool first_only : {false, true}) {
        const Sequences sequences(lengths, first_only);
        const int64_t tokens = sequences.tokens(), rows = sequences.rows();
        const Matrix x(tokens, h, 1), first(rows, h, 1);
        const AttentionShape shape = sequences.shape(heads.count, heads.size);
        for (int threads : {1, 3}) {
          INFO(heads.count, " heads of ", heads.size, ", ", tokens, " tokens of ", lengths.size(),
               " sequences, ", threads, " threads", first_only ? ", first queries" : "");
          set_threads(threads);
          Bf16Matrix context(rows, h);
          cpu::tile_self_attention(shape, x.view, first_only ? first.view : Tensor{}, weight.view,
                                   bias.view, context.view);
          CHECK(not_finite(context) == 0);
        }
      }
    }
  }
}

static void check_layer_output() {
  struct Shape {
    int64_t hidden, inner;
  };
  for (Shape s : {Shape{32, 32}, {64, 160}, {96, 416}, {384, 1536}, {1024, 480}}) {
    const int64_t h = s.hidden;
    const Matrix attention(h, h, 1 / std::sqrt(float(h))),
        inner(s.inner, h, 1 / std::sqrt(float(h)));
    const Matrix output(h, s.inner, 1 / std::sqrt(float(s.inner))), inner_bias(1, s.inner, 1);
    const Matrix bias(1, h, 1), gamma(1, h, 1), beta(1, h, 1);
    LayerOutput layer;
    layer.attention_weight = attention.view;
    layer.inner_weight = inner.view;
    layer.output_weight = output.view;
    layer.inner_bias = inner_bias.view;
    layer.attention_bias = layer.output_bias = bias.view;
    layer.attention_gamma = layer.output_gamma = gamma.view;
    layer.attention_beta = layer.output_beta = beta.view;
    layer.epsilon = 1e-12f;
    for (int64_t rows : {1, 15, 32, 33, 257, 700}) {
      Bf16Matrix context(rows, h);
      for (int64_t i = 0; i < rows * h; ++i) context[i] = bfloat16(std::cos(float(i)));
      for (int threads : {1, 3}) {
        INFO("(", rows, ",", h, ") inner ", s.inner, ", ", threads, " threads");
        set_threads(threads);
        const Matrix residual(rows, h, 1), y(rows, h, 0);
        std::memset(y.view.data, 0xFF, size_t(rows * h) * sizeof(float));
        cpu::tile_layer_output(layer, context.view, residual.view, y.view);
        int64_t wrong = 0;
        for (int64_t i = 0; i < rows * h; ++i) wrong += !std::isfinite(y.view.f32()[i]);
        CHECK(wrong == 0);
      }
    }
  }
}

static void check_attention() {
  // Dropout that keeps everything: the buffer holds `count` factors and 256 more.
  const auto factors = [](const Dropout&, uint32_t, uint32_t, int64_t begin, int64_t count,
                          float* buffer) -> const float* {
    const int64_t lead = begin % 128;
    for (int64_t i = 0; i < (lead + count + 127) / 128 * 128; ++i) buffer[i] = 1;
    return buffer + lead;
  };
  const Dropout dropout = Dropout::make(0.1, derive_key(1, 2), 3);
  for (int64_t size : {32, 64, 96}) {
    for (const std::vector<int32_t>& lengths :
         std::vector<std::vector<int32_t>>{{1}, {15, 16, 17}, {31, 1, 33}, {129}, {384, 5}}) {
      for (bool first_only : {false, true}) {
        const int64_t heads = 2, h = heads * size;
        const Sequences sequences(lengths, first_only);
        const int64_t tokens = sequences.tokens(), rows = sequences.rows();
        const std::vector<uint32_t> samples(lengths.size(), 7);
        AttentionShape shape = sequences.shape(heads, size);
        shape.samples = samples.data();
        const auto values = [](int64_t r, int64_t c) {
          Bf16Matrix x(r, c);
          for (int64_t i = 0; i < r * c; ++i) x[i] = bfloat16(std::sin(float(i)));
          return x;
        };
        const Bf16Matrix q = values(rows, h), k = values(tokens, h), v = values(tokens, h);
        const Bf16Matrix dout = values(rows, h);
        Bf16Matrix out(rows, h), dq(rows, h), dk(tokens, h), dv(tokens, h);
        const Matrix lse(heads, rows, 0);
        for (int threads : {1, 3}) {
          INFO("heads of ", size, ", ", tokens, " tokens, ", threads, " threads",
               first_only ? ", first queries" : "");
          set_threads(threads);
          cpu::bf16_attention(shape, dropout, factors, q.view, k.view, v.view, out.view, lse.view);
          cpu::bf16_attention_backward(shape, dropout, factors, q.view, k.view, v.view, lse.view,
                                       dout.view, dq.view, dk.view, dv.view);
          for (Bf16Matrix* x : {&out, &dq, &dk, &dv}) CHECK(not_finite(*x) == 0);
        }
      }
    }
  }
}

// Rows of c that fill no group, columns that fill no panel, depths of one and two parts.
static void check_product(const cpu::Product& p, const Matrix& c) {
  std::memset(p.c.data, 0xFF, size_t(p.c.size()) * sizeof(float));
  if (p.accumulate) std::fill_n(p.c.f32(), p.c.size(), 1.0f);
  cpu::fp32_gemm(p);
  int64_t wrong = 0;
  const int64_t across = p.transpose_a ? p.a.stride : 1, along = p.transpose_a ? 1 : p.a.stride;
  const int64_t b_across = p.transpose_b ? 1 : p.b.stride, b_along = p.transpose_b ? p.b.stride : 1;
  for (int64_t r = 0; r < p.c.rows; ++r) {
    for (int64_t n = 0; n < p.c.cols; ++n) {
      float sum = p.accumulate ? 1.0f : 0.0f;
      for (int64_t k = 0; k < p.depth(); ++k) {
        sum =
            std::fma(p.a.f32()[r * along + k * across], p.b.f32()[n * b_along + k * b_across], sum);
      }
      if (p.bias) sum += p.bias.f32()[n];
      wrong += p.c.f32()[r * p.c.cols + n] != sum;
    }
  }
  CHECK(wrong == 0);
  CHECK(c.begins_whole());
}

TEST_CASE("products of fp32 keep to their memory") {
  for (int64_t rows : {1, 5, 8, 13, 65}) {
    for (int64_t cols : {1, 2, 47, 48, 49, 100}) {
      for (int64_t depth : {1, 7, 48, 390}) {
        const Matrix a(rows, depth, 1), a_across(depth, rows, 1), bias(1, cols, 1),
            c(rows, cols, 1);
        const Matrix b(depth, cols, 1), b_along(cols, depth, 1);
        for (int threads : {1, 3}) {
          INFO("(", rows, ",", depth, ") x (", depth, ",", cols, "), ", threads, " threads");
          set_threads(threads);
          check_product({a.view, false, b_along.view, true, c.view, false, bias.view}, c);
          check_product({a.view, false, b.view, false, c.view, true}, c);
          check_product({a_across.view, true, b.view, false, c.view, true}, c);
        }
      }
    }
  }
  set_threads(1);
}

TEST_CASE("attention of whole layers keeps to its memory") {
  in_every_way(check_self_attention);
}
TEST_CASE("the output of whole layers keeps to its memory") {
  in_every_way(check_layer_output);
}
TEST_CASE("attention of training keeps to its memory") {
  in_every_way(check_attention);
}

}  // namespace finetune

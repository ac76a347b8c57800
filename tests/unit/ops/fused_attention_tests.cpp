// Attention by a library with masks of its own (FINETUNE_CUDA_ATTENTION=cudnn). No reference knows
// the masks: they are read off the forward pass, and the gradients must fit them.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>

#include "op_case.h"
#include "ops/library_attention.h"
#include "shared.h"

namespace finetune::test {
namespace {

constexpr int64_t kHeads = 2, kSize = 32, kWidth = kHeads * kSize;
constexpr double kDropped = 0.25;
const std::vector<int32_t> kOffsets = {0, 130, 131, 327};  // lengths 130, 1, 196
constexpr int64_t kTokens = 327, kSequences = 3, kLongest = 196;

using Values = std::vector<float>;  // (kTokens, kWidth), what a bf16 holds

Values random_values(unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  Values values(size_t(kTokens * kWidth));
  for (float& value : values) value = float(bfloat16(normal(generator)));
  return values;
}

// q, k and v side by side, as in the model; their gradients too.
class Attention {
 public:
  explicit Attention(Backend& backend) : backend_(backend) {
    upload(offsets_, kOffsets.data(), kOffsets.size() * sizeof(int32_t));
  }

  struct Named {
    uint32_t step = 5, first_sample = 40;
  };
  // (kTokens, kWidth)
  Values forward(const Values& q, const Values& k, const Values& v, Named named) {
    put(qkv_, 0, q);
    put(qkv_, 1, k);
    put(qkv_, 2, v);
    named_ = named;
    const Dropout dropout = Dropout::make(kDropped, derive_key(3, 20), named.step);
    backend_.attention(shape(), dropout, column(qkv_, 0), column(qkv_, 1), column(qkv_, 2),
                       whole(out_), lse());
    return get(whole(out_));
  }
  // Gradients of the last forward call: dq, dk, dv.
  std::vector<Values> backward(const Values& dout) {
    put(dout_, dout);
    const Dropout dropout = Dropout::make(kDropped, derive_key(3, 20), named_.step);
    backend_.attention_backward(shape(), dropout, column(qkv_, 0), column(qkv_, 1), column(qkv_, 2),
                                whole(out_), lse(), whole(dout_), column(dqkv_, 0),
                                column(dqkv_, 1), column(dqkv_, 2));
    return {get(column(dqkv_, 0)), get(column(dqkv_, 1)), get(column(dqkv_, 2))};
  }
  float scale() const { return float(1 / std::sqrt(double(kSize))); }

 private:
  using Memory = std::shared_ptr<void>;

  void upload(const Memory& to, const void* from, size_t bytes) {
    backend_.upload(to.get(), from, bytes);
  }
  AttentionShape shape() {
    std::vector<uint32_t> samples;
    for (uint32_t b = 0; b < kSequences; ++b) samples.push_back(named_.first_sample + b);
    upload(samples_, samples.data(), samples.size() * sizeof(uint32_t));
    const Segments segments = {kSequences, kLongest, static_cast<const int32_t*>(offsets_.get())};
    return {kHeads,   kSize,    scale(),
            segments, segments, static_cast<const uint32_t*>(samples_.get())};
  }
  Tensor column(const Memory& memory, int64_t part) const {
    return {static_cast<bfloat16*>(memory.get()) + part * kWidth, DType::bf16, kTokens, kWidth,
            3 * kWidth};
  }
  Tensor whole(const Memory& memory) const {
    return {memory.get(), DType::bf16, kTokens, kWidth, kWidth};
  }
  Tensor lse() const { return {lse_.get(), DType::f32, kHeads, kTokens, kTokens}; }
  void put(const Memory& to, const Values& values) {
    std::vector<bfloat16> rounded(values.begin(), values.end());
    upload(to, rounded.data(), rounded.size() * sizeof(bfloat16));
  }
  void put(const Memory& to, int64_t part, const Values& values) {
    std::vector<bfloat16> all(size_t(kTokens * 3 * kWidth));
    backend_.download(all.data(), to.get(), all.size() * sizeof(bfloat16));
    for (int64_t t = 0; t < kTokens; ++t) {
      for (int64_t c = 0; c < kWidth; ++c) {
        all[size_t((t * 3 + part) * kWidth + c)] = bfloat16(values[size_t(t * kWidth + c)]);
      }
    }
    upload(to, all.data(), all.size() * sizeof(bfloat16));
  }
  Values get(Tensor x) const {
    std::vector<bfloat16> rows(size_t((x.rows - 1) * x.stride + x.cols));
    backend_.download(rows.data(), x.data, rows.size() * sizeof(bfloat16));
    Values values;
    for (int64_t r = 0; r < x.rows; ++r) {
      for (int64_t c = 0; c < x.cols; ++c) values.push_back(float(rows[size_t(r * x.stride + c)]));
    }
    return values;
  }
  Memory bf16s(int64_t columns) { return backend_.allocate(size_t(kTokens * columns) * 2); }

  Backend& backend_;
  Memory offsets_ = backend_.allocate(kOffsets.size() * sizeof(int32_t));
  Memory samples_ = backend_.allocate(kSequences * sizeof(uint32_t));
  Memory qkv_ = bf16s(3 * kWidth), dqkv_ = bf16s(3 * kWidth), out_ = bf16s(kWidth);
  Memory dout_ = bf16s(kWidth);
  Memory lse_ = backend_.allocate(size_t(kHeads * kTokens) * sizeof(float));
  Named named_;
};

// Probabilities after dropout, of query i for key j of (sequence, head).
using Masked = std::map<std::pair<int64_t, int64_t>, std::vector<double>>;

// If the values are unit vectors, the outputs are probabilities: head_size keys at a time.
Masked masked_probabilities(Attention& attention, const Values& q, const Values& k) {
  Masked all;
  for (int64_t first = 0; first < kLongest; first += kSize) {
    Values v(size_t(kTokens * kWidth), 0.0f);
    for (size_t b = 0; b < kSequences; ++b) {
      for (int64_t j = first; j < std::min(first + kSize, int64_t(kOffsets[b + 1] - kOffsets[b]));
           ++j) {
        for (int64_t h = 0; h < kHeads; ++h) {
          v[size_t((kOffsets[b] + j) * kWidth + h * kSize + j - first)] = 1;
        }
      }
    }
    const Values out = attention.forward(q, k, v, {});
    for (size_t b = 0; b < kSequences; ++b) {
      const int64_t n = kOffsets[b + 1] - kOffsets[b];
      for (int64_t h = 0; h < kHeads; ++h) {
        std::vector<double>& p = all[{int64_t(b), h}];
        p.resize(size_t(n * n));
        for (int64_t i = 0; i < n; ++i) {
          for (int64_t j = first; j < std::min(first + kSize, n); ++j) {
            p[size_t(i * n + j)] =
                double(out[size_t((kOffsets[b] + i) * kWidth + h * kSize + j - first)]);
          }
        }
      }
    }
  }
  return all;
}

double dot(const Values& x, int64_t row, const Values& y, int64_t other, int64_t h) {
  double sum = 0;
  for (int64_t d = 0; d < kSize; ++d) {
    sum += double(x[size_t(row * kWidth + h * kSize + d)]) *
           double(y[size_t(other * kWidth + h * kSize + d)]);
  }
  return sum;
}

struct Expected {
  Values out, dq, dk, dv;
  int64_t kept = 0, elements = 0;
};

// Attention and its gradients with the mask shown by `masked`.
Expected expected_of(const Masked& masked, const Values& q, const Values& k, const Values& v,
                     const Values& dout, double scale) {
  Expected e;
  for (Values* x : {&e.out, &e.dq, &e.dk, &e.dv}) x->assign(q.size(), 0.0f);
  auto add = [](Values& to, int64_t row, double factor, const Values& from, int64_t other,
                int64_t h) {
    for (int64_t d = h * kSize; d < (h + 1) * kSize; ++d) {
      to[size_t(row * kWidth + d)] += float(factor * double(from[size_t(other * kWidth + d)]));
    }
  };
  for (const auto& [place, shown] : masked) {
    const auto [b, h] = place;
    const int64_t first = kOffsets[size_t(b)], n = kOffsets[size_t(b) + 1] - first;
    for (int64_t i = 0; i < n; ++i) {
      std::vector<double> p(static_cast<size_t>(n)), dm(static_cast<size_t>(n));
      double all = 0, weighted = 0;
      for (int64_t j = 0; j < n; ++j) {
        all += p[size_t(j)] = std::exp(scale * dot(q, first + i, k, first + j, h));
      }
      for (int64_t j = 0; j < n; ++j) {
        p[size_t(j)] /= all;
        const double most = p[size_t(j)] / (1 - kDropped), seen = shown[size_t(i * n + j)];
        const bool kept = seen > most / 2;
        // Each is dropped or kept in full, except for rounding to bf16.
        CHECK(std::abs(seen - (kept ? most : 0.0)) <= 0.01 * most);
        e.kept += kept;
        ++e.elements;
        const double factor = kept ? 1 / (1 - kDropped) : 0;
        dm[size_t(j)] = factor * dot(dout, first + i, v, first + j, h);
        weighted += p[size_t(j)] * dm[size_t(j)];
        add(e.out, first + i, p[size_t(j)] * factor, v, first + j, h);
        add(e.dv, first + j, p[size_t(j)] * factor, dout, first + i, h);
      }
      for (int64_t j = 0; j < n; ++j) {
        const double ds = scale * p[size_t(j)] * (dm[size_t(j)] - weighted);
        add(e.dq, first + i, ds, k, first + j, h);
        add(e.dk, first + j, ds, q, first + i, h);
      }
    }
  }
  return e;
}

double relative_rms(const Values& got, const Values& expected) {
  double errors = 0, squares = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    errors += std::pow(double(got[i]) - double(expected[i]), 2);
    squares += std::pow(double(expected[i]), 2);
  }
  return std::sqrt(errors / squares);
}

void check_backend(Backend& backend) {
  Attention attention(backend);
  const Values q = random_values(1), k = random_values(2), v = random_values(3);
  const Values dout = random_values(4);
  const Masked masked = masked_probabilities(attention, q, k);
  const Expected e = expected_of(masked, q, k, v, dout, double(attention.scale()));

  const Values out = attention.forward(q, k, v, {});
  const std::vector<Values> gradients = attention.backward(dout);
  // As in the op table: probabilities and their gradients are rounded to bf16.
  CHECK(relative_rms(out, e.out) < 6e-3);
  CHECK(relative_rms(gradients[0], e.dq) < 1.5e-2);
  CHECK(relative_rms(gradients[1], e.dk) < 1.5e-2);
  CHECK(relative_rms(gradients[2], e.dv) < 6e-3);

  const double share = double(e.kept) / double(e.elements);
  const double deviation = std::sqrt(kDropped * (1 - kDropped) / double(e.elements));
  INFO("kept ", share, " of ", e.elements);
  CHECK(std::abs(share - (1 - kDropped)) < 5 * deviation);
  // Heads have different masks.
  CHECK(masked.at({0, 0}) != masked.at({0, 1}));

  // The same call has the same bits; another step, or another micro-batch of the step, has not.
  CHECK(attention.forward(q, k, v, {}) == out);
  CHECK(attention.backward(dout) == gradients);
  const Values other_step = attention.forward(q, k, v, {6, 40});
  const Values other_batch = attention.forward(q, k, v, {5, 43});
  CHECK(relative_rms(other_step, out) > 0.1);
  CHECK(relative_rms(other_batch, out) > 0.1);
  CHECK(relative_rms(other_batch, other_step) > 0.1);
}

}  // namespace

TEST_CASE(
    "plans of a library's attention: numbers of sequences with four steps between powers of two") {
  using library_attention::planned_sequences;
  std::vector<int64_t> sizes;
  for (int64_t sequences = 1; sequences <= 128; ++sequences) {
    const int64_t planned = planned_sequences(sequences);
    CHECK(planned >= sequences);
    if (sizes.empty() || planned != sizes.back()) sizes.push_back(planned);
  }
  CHECK(sizes ==
        std::vector<int64_t>{8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128});
  for (int64_t sequences = 8; sequences <= 5000; ++sequences) {
    const int64_t planned = planned_sequences(sequences);
    CHECK(planned >= sequences);
    CHECK(4 * planned <= 5 * sequences);
    CHECK(planned_sequences(planned) == planned);
  }
}

TEST_CASE("masks of the GPU's own attention library: gradients fit them") {
  int present = 0;
  for (const BackendFactory& factory : backends_under_test()) {
    if (factory.device != Device::gpu) continue;
    const auto backend = factory.make();
    if (!backend || !backend->library_attention()) continue;
    ++present;
    check_backend(*backend);
  }
  if (present == 0) skip("no GPU whose attention is a library's (FINETUNE_CUDA_ATTENTION=cudnn)");
}

}  // namespace finetune::test

// Replaces cuDNN's fused attention by plain loops, with its own masks.
// (src/ops/cuda/attention/fused_attention.h.) It reads lengths and offsets as a plan does, whatever
// is in between.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "core/numeric/dtype.h"
#include "core/numeric/philox.h"
#include "ops/cuda/attention/fused_attention.h"

namespace finetune::cuda {
namespace {

constexpr size_t kWorkspace = 5000;

// One head of one sequence.
class Head {
 public:
  Head(const FusedShape& s, const FusedMemory& memory, int64_t b, int64_t head)
      : queries(ints(memory, FusedTensor::query_lengths)[b]),
        keys(ints(memory, FusedTensor::key_lengths)[b]),
        s_(s),
        memory_(memory),
        b_(b),
        head_(head) {
    if (queries > s.length || keys > s.length) {
      std::fprintf(stderr, "a sequence is longer than its plan\n");
      std::abort();
    }
  }
  bfloat16* q(FusedTensor t, int64_t i) const {
    return row(t, FusedTensor::q_offsets, s_.q_stride, i);
  }
  bfloat16* k(FusedTensor t, int64_t i) const {
    return row(t, FusedTensor::k_offsets, s_.k_stride, i);
  }
  bfloat16* v(FusedTensor t, int64_t i) const {
    return row(t, FusedTensor::v_offsets, s_.v_stride, i);
  }
  bfloat16* out(FusedTensor t, int64_t i) const {
    return row(t, FusedTensor::out_offsets, s_.out_stride, i);
  }
  float& stats(int64_t i) const {
    return static_cast<float*>(
        memory_[FusedTensor::stats])[ints(memory_, FusedTensor::stats_offsets)[b_] + i * s_.heads +
                                     head_];
  }
  float& delta(int64_t i) const {
    return static_cast<float*>(
        memory_[FusedTensor::deltas])[(b_ * s_.heads + head_) * s_.length + i];
  }
  double dot(const bfloat16* x, const bfloat16* y) const {
    double sum = 0;
    for (int64_t d = 0; d < s_.head_size; ++d) sum += double(float(x[d])) * double(float(y[d]));
    return sum;
  }
  double score(int64_t i, int64_t j) const {
    return double(s_.scale) * dot(q(FusedTensor::q, i), k(FusedTensor::k, j));
  }
  // 0 or 1 / (1 - p)
  double factor(int64_t i, int64_t j) const {
    if (s_.threshold == 0) return 1;
    const auto number = [&](FusedTensor t) { return *static_cast<const uint64_t*>(memory_[t]); };
    const uint64_t seed = number(FusedTensor::seed);
    const PhiloxBlock bits = philox({uint32_t(seed), uint32_t(seed >> 32)},
                                    {uint32_t(b_ * s_.heads + head_), uint32_t(i), uint32_t(j),
                                     uint32_t(number(FusedTensor::offset))});
    return bits[0] >> 16 >= s_.threshold ? 1 / (1 - s_.dropped()) : 0;
  }

  const int64_t queries, keys;

 private:
  static const int32_t* ints(const FusedMemory& memory, FusedTensor t) {
    return static_cast<const int32_t*>(memory[t]);
  }
  bfloat16* row(FusedTensor t, FusedTensor offsets, int64_t stride, int64_t i) const {
    return static_cast<bfloat16*>(memory_[t]) + ints(memory_, offsets)[b_] + i * stride +
           head_ * s_.head_size;
  }

  const FusedShape& s_;
  const FusedMemory& memory_;
  const int64_t b_, head_;
};

void store(bfloat16* to, const std::vector<double>& from) {
  for (size_t d = 0; d < from.size(); ++d) to[d] = bfloat16(float(from[d]));
}

void add(std::vector<double>& to, double factor, const bfloat16* from) {
  for (size_t d = 0; d < to.size(); ++d) to[d] += factor * double(float(from[d]));
}

void forward(const FusedShape& s, const Head& h) {
  std::vector<double> scores(static_cast<size_t>(h.keys)), sums;
  for (int64_t i = 0; i < h.queries; ++i) {
    for (int64_t j = 0; j < h.keys; ++j) scores[size_t(j)] = h.score(i, j);
    const double largest = *std::max_element(scores.begin(), scores.end());
    double all = 0;
    sums.assign(size_t(s.head_size), 0);
    for (int64_t j = 0; j < h.keys; ++j) {
      const double p = std::exp(scores[size_t(j)] - largest);
      all += p;
      add(sums, p * h.factor(i, j), h.v(FusedTensor::v, j));
    }
    for (double& sum : sums) sum /= all;
    store(h.out(FusedTensor::out, i), sums);
    h.stats(i) = float(largest + std::log(all));
  }
}

void backward(const FusedShape& s, const Head& h) {
  const std::vector<double> zeros(size_t(s.head_size), 0);
  std::vector<std::vector<double>> dk(size_t(h.keys), zeros), dv = dk;
  for (int64_t i = 0; i < h.queries; ++i) {
    const bfloat16 *dout = h.out(FusedTensor::dout, i), *query = h.q(FusedTensor::q, i);
    h.delta(i) = float(h.dot(dout, h.out(FusedTensor::out, i)));
    std::vector<double> dq = zeros;
    for (int64_t j = 0; j < h.keys; ++j) {
      const double p = std::exp(h.score(i, j) - double(h.stats(i))), factor = h.factor(i, j);
      const double dm = h.dot(dout, h.v(FusedTensor::v, j));
      const double ds = double(s.scale) * p * (factor * dm - double(h.delta(i)));
      add(dq, ds, h.k(FusedTensor::k, j));
      add(dk[size_t(j)], ds, query);
      add(dv[size_t(j)], p * factor, dout);
    }
    store(h.q(FusedTensor::dq, i), dq);
  }
  for (int64_t j = 0; j < h.keys; ++j) {
    store(h.k(FusedTensor::dk, j), dk[size_t(j)]);
    store(h.v(FusedTensor::dv, j), dv[size_t(j)]);
  }
}

class Plan final : public FusedPlan {
 public:
  explicit Plan(const FusedShape& shape) : shape_(shape) {}
  size_t workspace() const override { return kWorkspace; }
  void run(const FusedMemory& memory, void* workspace, cudaStream_t stream) override {
    host_cuda::enqueue(stream, [s = shape_, memory, workspace] {
      const host_cuda::DeviceAccess access;
      std::fill_n(static_cast<char*>(workspace), kWorkspace, char(0x7F));
      for (int64_t b = 0; b < s.sequences; ++b) {
        for (int64_t head = 0; head < s.heads; ++head) {
          const Head h(s, memory, b, head);
          s.backward ? backward(s, h) : forward(s, h);
        }
      }
    });
  }

 private:
  const FusedShape shape_;
};

// Sequences of more than 512 are refused, and gradients of heads of 128.
class Library final : public FusedLibrary {
 public:
  std::string name() const override { return "cuDNN on the host"; }
  std::unique_ptr<FusedPlan> plan(const FusedShape& shape) override {
    if (shape.length > 512 || (shape.backward && shape.head_size == 128)) {
      throw std::runtime_error("refused");
    }
    return std::make_unique<Plan>(shape);
  }
};

}  // namespace

std::unique_ptr<FusedLibrary> open_fused_library() {
  return std::make_unique<Library>();
}

}  // namespace finetune::cuda

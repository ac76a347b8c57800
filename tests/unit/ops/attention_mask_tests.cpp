// Attention's dropout masks that the GPU keeps for the backward pass, and heads that share blocks.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>

#include "op_case.h"
#include "ops/attention_masks.h"
#include "shared.h"

namespace finetune::test {
namespace {

struct Shape {
  int64_t heads, size;
  std::vector<int32_t> lengths;
  bool first_only = false;
  int64_t window = -1;
  int64_t longest = 0;  // what the call is told, if not the longest of all
};

const Dropout kDropout = Dropout::make(0.25, derive_key(3, 20), 9);
constexpr int64_t kFirstHead = 3;

class Masked {
 public:
  Masked(Backend& backend, const Shape& shape) : backend_(backend), shape_(shape) {
    const std::vector<int32_t>& lengths = shape.lengths;
    for (size_t b = 0; b < lengths.size(); ++b) {
      keys_.push_back(keys_.back() + lengths[b]);
      queries_.push_back(queries_.back() + (shape.first_only ? 1 : lengths[b]));
      samples_.push_back(uint32_t(7 * b + 1));
    }
    longest_ = std::max(shape.longest, int64_t(*std::max_element(lengths.begin(), lengths.end())));
    const int64_t width = shape.heads * shape.size,
                  floats = attention_mask_floats(shape.heads, queries_.back(), longest_);
    mask_ = vector(static_cast<float*>(memory(size_t(floats) * sizeof(float))), floats);
    q_ = random(queries_.back(), width);
    k_ = random(keys_.back(), width);
    v_ = random(keys_.back(), width);
    dout_ = random(queries_.back(), width);
    of_.heads = shape.heads;
    of_.head_size = shape.size;
    of_.scale = 0.3f;
    of_.keys = segments(keys_, longest_);
    of_.queries = shape.first_only ? segments(queries_, 1) : of_.keys;
    of_.samples = static_cast<const uint32_t*>(uploaded(samples_));
    of_.first_head = kFirstHead;
    of_.window = shape.window;
  }

  // out, lse, dq, dk and dv of a forward and a backward pass, with the mask kept or not; `spoil`
  // is called between them.
  template <typename Spoil>
  std::vector<char> results(bool kept, const Spoil& spoil) {
    const Tensor mask = kept ? mask_ : Tensor{};
    const Tensor out = bf16s(q_.rows, q_.cols), lse = floats(shape_.heads, q_.rows);
    const Tensor dq = bf16s(q_.rows, q_.cols), dk = bf16s(k_.rows, k_.cols);
    const Tensor dv = bf16s(k_.rows, k_.cols);
    backend_.attention(of_, kDropout, q_, k_, v_, out, lse, mask);
    spoil();
    backend_.attention_backward(of_, kDropout, q_, k_, v_, out, lse, dout_, dq, dk, dv, mask);
    std::vector<char> all;
    for (const Tensor& x : {out, lse, dq, dk, dv}) {
      const size_t begin = all.size(), bytes = size_t(x.size()) * size_of(x.dtype);
      all.resize(begin + bytes);
      backend_.download(all.data() + begin, x.data, bytes);
    }
    return all;
  }
  std::vector<char> results(bool kept) {
    return results(kept, [] {});
  }

  std::vector<uint64_t> mask() const {
    std::vector<uint64_t> words(size_t(mask_.size()) / 2);
    backend_.download(words.data(), mask_.data, words.size() * sizeof(uint64_t));
    return words;
  }
  void set_mask(const std::vector<uint64_t>& words) {
    backend_.upload(mask_.data, words.data(), words.size() * sizeof(uint64_t));
  }

  // Pairs that a query sees and whose bit is not the CPU's.
  int64_t wrong_bits() const {
    const std::vector<uint64_t> words = mask();
    int64_t wrong = 0;
    for (int64_t head = 0; head < shape_.heads; ++head) {
      for (size_t b = 0; b + 1 < keys_.size(); ++b) {
        const int64_t keys = keys_[b + 1] - keys_[b], queries = queries_[b + 1] - queries_[b];
        const int64_t row = head * queries_.back() + queries_[b];
        const uint64_t* of = words.data() + row * attention_mask_words(longest_);
        for (int64_t i = 0; i < queries; ++i) {
          for (int64_t j = of_.first_key(i); j < of_.end_key(i, keys); ++j) {
            const int64_t bit = i * keys + j;
            const bool kept = dropout_bits(kDropout.key, uint32_t(kFirstHead + head), samples_[b],
                                           kDropout.step, uint32_t(bit)) >= kDropout.threshold;
            wrong += kept != (of[bit / 64] >> bit % 64 & 1);
          }
        }
      }
    }
    return wrong;
  }

 private:
  void* memory(size_t bytes) {
    all_.push_back(backend_.allocate(bytes));
    return all_.back().get();
  }
  template <typename T>
  void* uploaded(const std::vector<T>& values) {
    void* to = memory(values.size() * sizeof(T));
    backend_.upload(to, values.data(), values.size() * sizeof(T));
    return to;
  }
  Segments segments(const std::vector<int32_t>& offsets, int64_t longest) {
    return {int64_t(offsets.size()) - 1, longest, static_cast<const int32_t*>(uploaded(offsets))};
  }
  Tensor bf16s(int64_t rows, int64_t cols) {
    return {memory(size_t(rows * cols) * 2), DType::bf16, rows, cols, cols};
  }
  Tensor floats(int64_t rows, int64_t cols) {
    return matrix(static_cast<float*>(memory(size_t(rows * cols) * sizeof(float))), rows, cols);
  }
  Tensor random(int64_t rows, int64_t cols) {
    std::normal_distribution<float> normal;
    std::vector<bfloat16> values;
    for (int64_t i = 0; i < rows * cols; ++i) values.push_back(bfloat16(normal(generator_)));
    const Tensor to = bf16s(rows, cols);
    backend_.upload(to.data, values.data(), values.size() * sizeof(bfloat16));
    return to;
  }

  Backend& backend_;
  const Shape& shape_;
  std::mt19937 generator_{5};
  std::vector<int32_t> keys_{0}, queries_{0};
  std::vector<uint32_t> samples_;
  int64_t longest_ = 0;
  std::vector<std::shared_ptr<void>> all_;
  Tensor mask_, q_, k_, v_, dout_;
  AttentionShape of_;
};

// Two heads share a block here (ops/cuda/attention/attention.h), and sequences of more than 32
// tokens take several turns.
Shape many_short() {
  Shape shape{16, 32, {40, 64}};
  for (int32_t b = 0; b < 128; ++b) shape.lengths.push_back(1 + b % 3);
  shape.lengths.push_back(20);
  return shape;
}

}  // namespace

TEST_CASE("attention on the GPU keeps the CPU's masks, with the results of masks made twice") {
  const Shape shapes[] = {{6, 32, {16, 1, 9}},
                          {5, 32, {31, 32, 1, 16}},
                          {3, 64, {63, 64, 65}},
                          {3, 64, {63, 64, 65}, true},
                          {2, 128, {130, 5}},
                          {2, 32, {200, 3}, false, 16},
                          {5, 64, {3, 17}, false, -1, 128},
                          many_short()};
  int64_t checked = 0;
  for (const BackendFactory& factory : backends_under_test()) {
    const auto backend = factory.device == Device::gpu ? factory.make() : nullptr;
    if (!backend || backend->compute_type() != DType::bf16) continue;
    for (const Shape& shape : shapes) {
      INFO(factory.name, ", heads of ", shape.size, ", first length ", shape.lengths[0]);
      Masked masked(*backend, shape);
      CHECK(backend->keeps_attention_masks() == !backend->library_attention());
      const std::vector<char> kept = masked.results(true);
      CHECK(masked.wrong_bits() == 0);
      CHECK(masked.results(false) == kept);
      ::setenv("FINETUNE_CUDA_MASKS", "0", 1);
      CHECK(!backend->keeps_attention_masks());
      CHECK(masked.results(false) == kept);
      ::unsetenv("FINETUNE_CUDA_MASKS");
      // The backward pass reads the mask that is there.
      const std::vector<char> other = masked.results(true, [&] {
        std::vector<uint64_t> words = masked.mask();
        for (uint64_t& word : words) word = ~word;
        masked.set_mask(words);
      });
      CHECK(other != kept);
      ++checked;
    }
  }
  if (checked == 0) skip("no CUDA device");
}

}  // namespace finetune::test

// Of the algorithms that cuBLASLt names the fastest with the first one's bits is taken, no other.
#include <cublasLt.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "op_case.h"

namespace finetune::test {
namespace {

struct Products {
  std::vector<float> values;
  int64_t other_bits = 0, same_bits = 0;  // begun with these algorithms after the first call
};

// Twice each product of a linear layer; the weights' gradient is added to itself.
Products products(const BackendFactory& factory, const char* algorithms) {
  ::setenv("FINETUNE_CUDA_ALGORITHMS", algorithms, 1);
  const auto backend = factory.make();
  ::unsetenv("FINETUNE_CUDA_ALGORITHMS");
  constexpr int64_t kRows = 24, kIn = 40, kOut = 16, kStride = 48;
  const DType type = backend->activation_type();
  std::vector<std::shared_ptr<void>> memory;
  auto tensor = [&](int64_t rows, int64_t cols, DType dtype) {
    const size_t count = size_t(rows * kStride);
    std::vector<float> values(count);
    for (size_t i = 0; i < count; ++i) values[i] = float(i % 31) / 32 - 0.4f;
    memory.push_back(backend->allocate(count * sizeof(float)));
    Tensor out{memory.back().get(), dtype, rows, cols, kStride};
    if (dtype == DType::f32) {
      backend->upload(out.data, values.data(), count * sizeof(float));
    } else {
      const std::vector<bfloat16> rounded(values.begin(), values.end());
      backend->upload(out.data, rounded.data(), count * sizeof(bfloat16));
    }
    return out;
  };
  const Tensor x = tensor(kRows, kIn, type), y = tensor(kRows, kOut, type);
  const Tensor w = tensor(kOut, kIn, DType::f32), dw = tensor(kOut, kIn, DType::f32);
  const Tensor dx = tensor(kRows, kIn, type), bias = tensor(1, kOut, DType::f32);
  Products result;
  for (int time = 0; time < 2; ++time) {
    result.other_bits = -host_cuda::products_of(host_cuda::kOtherBits);
    result.same_bits = -host_cuda::products_of(host_cuda::kSameBits);
    backend->linear(x, w, bias, y);
    backend->linear_backward_input(y, w, dx, false);
    backend->linear_backward_weight(y, x, dw, {}, true);
  }
  result.other_bits += host_cuda::products_of(host_cuda::kOtherBits);
  result.same_bits += host_cuda::products_of(host_cuda::kSameBits);
  for (const Tensor& t : {y, dx, dw}) {
    std::vector<float> values(size_t(t.rows * kStride * (t.dtype == DType::f32 ? 2 : 1)) / 2);
    backend->download(values.data(), t.data, values.size() * sizeof(float));
    result.values.insert(result.values.end(), values.begin(), values.end());
  }
  return result;
}

}  // namespace

TEST_CASE("the GPU's timed algorithms: the fastest with the first one's bits") {
  for (const BackendFactory& factory : backends_under_test()) {
    INFO(factory.name);
    const Products first = products(factory, "first"), timed = products(factory, "timed");
    CHECK(std::memcmp(first.values.data(), timed.values.data(),
                      first.values.size() * sizeof(float)) == 0);
    CHECK(first.values.size() == timed.values.size());
    CHECK(first.same_bits == 0);
    CHECK(timed.same_bits == 3);
    CHECK(timed.other_bits == 0);
  }
}

}  // namespace finetune::test

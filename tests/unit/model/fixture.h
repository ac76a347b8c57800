// Small models, batches and golden values for the model's tests.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "model/encoder.h"

namespace finetune::test {

// Sums of floats in another order: a few units in the last place of the largest value.
constexpr double kSameSum = 2e-6;
inline const DropoutPlan kDropout{1234, 7, 0.1, 0.2, 0.3, 0.15};
inline const Head kHeads[] = {{HeadKind::sequence, 5}, {HeadKind::token, 2}};
inline std::string text(Head head) {
  return head.kind == HeadKind::sequence ? "sequence" : "token";
}

// A safetensors file of these tests' golden values: F32, I32 and I64 tensors, well-formed.
struct GoldenTensor {
  std::vector<int64_t> shape;
  std::vector<float> values;      // of F32
  std::vector<int64_t> integers;  // of I32 and I64
};
std::map<std::string, GoldenTensor> read_golden(const std::filesystem::path& path);

// The reference and every available backend.
struct NamedBackend {
  std::string name;
  std::unique_ptr<Backend> backend;
  // Tolerance for states, logits and losses against golden values from a CPU: a GPU adds in another
  // order.
  double golden_tolerance = 1e-6;
};
std::vector<NamedBackend> model_backends();

struct Sequence {
  std::vector<int32_t> ids;
  std::vector<int32_t> types;
  uint32_t sample = 0;
};
PackedBatch pack(const std::vector<Sequence>& sequences);
// Random sequences of these lengths, without padding tokens; sample i of the batch is the same
// whatever the others are.
std::vector<Sequence> random_sequences(const EncoderConfig& config,
                                       const std::vector<int>& lengths);

EncoderConfig small_config(int64_t layers);

// Floats in a backend's memory.
class Arena {
 public:
  Arena(Backend& backend, const std::vector<float>& values);
  Arena(Backend& backend, int64_t size);
  float* data() const { return static_cast<float*>(memory_.get()); }
  std::vector<float> values() const;

 private:
  Backend& backend_;
  int64_t size_;
  std::shared_ptr<void> memory_;
};

std::vector<float> download(Backend& backend, Tensor contiguous);

// Random weights for a table: all tensors including biases, in multiples of 2^-16.
std::vector<float> random_weights(const ParameterTable& table, double range);

// The arena of `rounded` (ParameterTable's `products`) with the values of the table's arena.
std::vector<float> rounded_products(const ParameterTable& table, const std::vector<float>& weights,
                                    const ParameterTable& rounded);

// Logits and, with `coefficients` of the same shape, the gradients of their inner product.
struct PassResult {
  std::vector<float> logits;
  std::vector<float> gradients;
};
struct PassOptions {
  const DropoutPlan* dropout = nullptr;
  int lowest_layer = 0;
};
PassResult run_pass(Backend& backend, const EncoderConfig& config, const ParameterTable& table,
                    const std::vector<float>& weights, const PackedBatch& batch,
                    const std::vector<float>& coefficients, PassOptions options = {});

// Coefficients in [-1, 1] for each logit by sample, position and column, independent of packing.
std::vector<float> logit_coefficients(const PackedBatch& batch, Head head);

// The slope of a loss along a direction of +1 or -1 for each included parameter element: from
// gradients, and by finite differences.
struct Slope {
  double predicted = 0, measured = 0, norm = 0;  // norm: of the included gradients
};
Slope slope_along(const ParameterTable& table, uint32_t trial,
                  const std::function<bool(const Parameter&)>& takes,
                  const std::vector<float>& weights, const std::vector<float>& gradients,
                  const std::function<double(const std::vector<float>&)>& loss);

// max |a - b| / max |b|, with at least `floor` as denominator.
double relative_error(const std::vector<float>& a, const std::vector<float>& b,
                      double floor = 1e-30);

}  // namespace finetune::test

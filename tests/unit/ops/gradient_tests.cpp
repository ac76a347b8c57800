// Every gradient of the reference against finite differences of its own forward operation. Other
// backends are compared with the reference, gradients included (backend_tests.cpp).
#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "op_case.h"

namespace finetune::test {
namespace {

constexpr double kStep = 0x1p-6;      // exact on the table's inputs
constexpr double kLargestWork = 4e6;  // larger cases repeat the smaller ones' formulas

// sum(output * cotangent) of the forward operation, and its rounding error: each output is rounded
// to float once, by up to 2^-24 of itself.
struct Loss {
  double value = 0;
  double noise = 0;
};

Loss evaluate(const OpCase& c, Backend& backend) {
  OpData data(c, backend);
  c.forward(backend, data);
  Loss loss;
  double squares = 0;
  for (const auto& [output, cotangent] : c.cotangents) {
    const std::vector<float> y = data.values(output);
    const std::vector<float> dy =
        without_gaps(c, cotangent, c.buffers.at(c.views.at(cotangent).buffer).values.get());
    for (size_t i = 0; i < y.size(); ++i) {
      double term = double(y[i]) * dy[i];
      loss.value += term;
      squares += term * term;
    }
  }
  loss.noise = 0x1p-24 * std::sqrt(squares);
  return loss;
}

// The case with `input` moved by `step` along `direction` (+1 or -1 per element).
OpCase moved(const OpCase& c, const std::string& input, const std::vector<float>& direction,
             double step) {
  OpCase out = c;
  const OpView& view = c.views.at(input);
  OpBuffer& buffer = out.buffers.at(view.buffer);
  std::vector<float>& values = buffer.values.own();
  for (int64_t i = 0; i < int64_t(direction.size()); ++i) {
    int64_t at = i / view.cols * buffer.stride + view.first + i % view.cols;
    values[size_t(at)] += float(step) * direction[size_t(i)];
  }
  return out;
}

void check_gradient(const OpCase& c, const OpGradient& g, Backend& backend) {
  OpData data(c, backend);
  c.forward(backend, data);
  std::vector<float> before = data.values(g.gradient);
  c.run(backend, data);
  std::vector<float> gradient = data.values(g.gradient);
  for (uint32_t trial = 0; trial < 2; ++trial) {
    std::vector<float> direction;
    double predicted = 0, squares = 0;
    for (size_t i = 0; i < gradient.size(); ++i) {
      bool up = philox({trial, 99}, {uint32_t(i), 0, 0, 0})[0] & 1;
      direction.push_back(up ? 1.0f : -1.0f);
      double value = double(gradient[i]) - (g.added ? before[i] : 0.0f);
      predicted += value * direction.back();
      squares += value * value;
    }
    // Two central differences, extrapolated to an error of the fourth order (Richardson).
    double slope[2], noise = 0;
    for (int k = 0; k < 2; ++k) {
      double step = kStep * (k + 1);
      Loss up = evaluate(moved(c, g.input, direction, step), backend);
      Loss down = evaluate(moved(c, g.input, direction, -step), backend);
      slope[k] = (up.value - down.value) / (2 * step);
      noise += 4 * up.noise / step;
    }
    double measured = (4 * slope[0] - slope[1]) / 3;
    INFO("gradient ", g.gradient, " of ", g.input);
    INFO("predicted ", predicted, " measured ", measured, " noise ", noise);
    CHECK(std::abs(measured - predicted) <= 1e-4 * std::sqrt(squares) + noise);
  }
}

}  // namespace

TEST_CASE("gradients of the reference equal finite differences") {
  auto backend = make_reference_backend();
  std::map<std::string, int> checked;
  for (const OpCase& c : op_table()) {
    if (!c.forward || c.work > kLargestWork) continue;
    INFO(c.op, " ", c.shape);
    ++checked[c.op];
    for (const OpGradient& g : c.gradients) check_gradient(c, g, *backend);
  }
  const std::set<std::string> expected = {"linear_backward_input",   "linear_backward_weight",
                                          "activation_backward",     "dropout",
                                          "scatter_rows_add",        "embed_backward",
                                          "add_layer_norm_backward", "attention_backward",
                                          "cross_entropy",           "binary_cross_entropy",
                                          "squared_error",           "span_cross_entropy"};
  for (const std::string& op : expected) {
    INFO(op);
    CHECK(checked[op] >= 3);
  }
}

}  // namespace finetune::test

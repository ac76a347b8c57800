// The reference's forward operations against values of PyTorch 2.15 in double precision. They check
// the definition itself with something outside of this project.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "ops/backend.h"

namespace finetune::test {
namespace {

using Floats = std::vector<float>;

Tensor rows(Floats& values, int64_t count) {
  return matrix(values.data(), count, int64_t(values.size()) / count);
}

void check_near(const Floats& got, const std::vector<double>& expected) {
  REQUIRE(got.size() == expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    INFO("value ", i, ": ", got[i], " expected ", expected[i]);
    CHECK(std::abs(got[i] - expected[i]) <= 1e-7 * std::max(1.0, std::abs(expected[i])));
  }
}

}  // namespace

TEST_CASE("activations") {
  auto backend = make_reference_backend();
  const std::pair<Activation, std::vector<double>> functions[] = {
      {Activation::gelu, {-0.0455002639, -0.154268769, 0, 0.841344746, 2.99595031}},
      {Activation::gelu_tanh, {-0.0454023059, -0.15428599, 0, 0.841191991, 2.99636261}},
      {Activation::relu, {0, 0, 0, 1, 3}},
      {Activation::silu, {-0.238405844, -0.188770334, 0, 0.731058579, 2.85772238}},
      {Activation::tanh, {-0.96402758, -0.462117157, 0, 0.761594156, 0.995054754}}};
  for (const auto& [f, expected] : functions) {
    Floats x = {-2, -0.5f, 0, 1, 3}, y(5);
    backend->activation(f, rows(x, 1), rows(y, 1));
    check_near(y, expected);
  }
}

TEST_CASE("losses") {
  auto backend = make_reference_backend();
  Floats logits = {1, -0.5f, 2, 0.25f, 0.75f, -1}, weights = {0.5f, 2, 1.25f}, losses(2);
  const int32_t labels[] = {0, 1};
  // torch.nn.functional.cross_entropy(label_smoothing=0.1, reduction="none") * weights[labels]
  backend->cross_entropy(rows(logits, 2), labels, rows(weights, 1), 0.1f, 1, rows(losses, 1), {});
  check_near(losses, {0.694102849, 1.30356895});
  // binary_cross_entropy_with_logits(weight=, reduction="none").mean(1)
  Floats targets = {1, 0, 1, 0, 0, 1};
  backend->binary_cross_entropy(rows(logits, 2), rows(targets, 2), rows(weights, 1), 1,
                                rows(losses, 1), {});
  check_near(losses, {0.421148275, 1.44276294});
  // The mean of two cross_entropy over positions, start 1 and end 2 of three.
  Floats spans = {1, 0.5f, -0.5f, 2, 0.25f, -1}, loss(1);
  const int32_t offsets[] = {0, 3}, start = 1, end = 2;
  backend->span_cross_entropy(rows(spans, 3), {1, 3, offsets}, &start, &end, 1, rows(loss, 1), {});
  check_near(loss, {2.63464352});
}

TEST_CASE("layer normalisation") {
  auto backend = make_reference_backend();
  Floats x = {1, 2, 4, -3}, gamma = {1, 0.5f, 2, -1}, beta = {0, 0.25f, -0.5f, 1}, y(4);
  backend->add_layer_norm(rows(x, 1), {}, {}, {}, rows(gamma, 1), rows(beta, 1), 1e-12f, {}, {},
                          rows(y, 1));
  check_near(y, {0, 0.446116135, 1.85339362, 2.56892908});
}

TEST_CASE("attention") {
  auto backend = make_reference_backend();
  Floats q = {1, 0.5f, -1, 0.25f, 0.5f, 2}, k = {0.25f, -1, 1, 1, -0.5f, 0.75f};
  Floats v = {1, 2, 3, -4, 0.5f, 0.25f}, out(6), lse(3);
  const int32_t offsets[] = {0, 3};
  const uint32_t sample = 0;
  Segments all{1, 3, offsets};
  AttentionShape shape{1, 2, float(1 / std::sqrt(2.0)), all, all, &sample};
  backend->attention(shape, {}, rows(q, 3), rows(k, 3), rows(v, 3), rows(out, 3), rows(lse, 1));
  check_near(out, {2.1458969, -2.07864117, 1.12473717, -0.186092314, 2.22961613, -2.60952484});
  check_near(lse, {1.53506976, 1.07042548, 2.14518508});
}

TEST_CASE("three steps of torch.optim.AdamW") {
  auto backend = make_reference_backend();
  Floats p = {1, -2, 0.5f}, m(3), v(3);
  AdamW options;
  options.learning_rate = 0.1f;
  options.weight_decay = 0.01f;
  for (Floats g : {Floats{0.5f, -0.25f, 0}, {1, 2, -0.125f}, {-0.5f, 0.75f, 0.25f}}) {
    backend->adamw(options, rows(p, 1), rows(g, 1), rows(m, 1), rows(v, 1));
    ++options.step;
  }
  check_near(p, {0.758772288, -2.02943482, 0.541412145});
  check_near(m, {0.0805, 0.23475, 0.01375});
  check_near(v, {0.00149850025, 0.00462087506, 7.8109375e-05});
}

TEST_CASE("dropout keeps its share, scales it, and names rows by position, sample and step") {
  auto backend = make_reference_backend();
  const int64_t n = 100000;
  Floats ones(size_t(n), 1.0f), y(ones);
  auto masked = [&](uint32_t position, uint32_t sample, uint32_t step) {
    RowNames names{&position, &sample};
    backend->dropout(rows(ones, 1), Dropout::make(0.1, {1, 2}, step), names, rows(y, 1));
    return y;
  };
  Floats first = masked(3, 4, 5);
  int64_t kept = 0, scaled = 0;
  for (float value : first) {
    kept += value != 0;
    scaled += std::abs(value - 1 / 0.9) < 1e-4;
  }
  CHECK(kept == scaled);
  CHECK(std::abs(double(kept) / double(n) - 0.9) < 5 * std::sqrt(0.09 / double(n)));
  CHECK(masked(3, 4, 5) == first);
  CHECK(masked(2, 4, 5) != first);
  CHECK(masked(3, 5, 5) != first);
  CHECK(masked(3, 4, 6) != first);
}

}  // namespace finetune::test

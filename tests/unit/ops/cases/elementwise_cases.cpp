// Op table: activations, dropout and sums.
#include <cmath>

#include "core/text/text.h"
#include "op_case.h"

namespace finetune::test {
namespace {

struct ElementShape {
  int64_t rows, cols, gap;
  bool in_place;
  std::string text() const {
    return concat("(", rows, ",", cols, ") gap ", gap, in_place ? " in place" : "");
  }
};

const ElementShape kShapes[] = {{1, 1, 0, false},    {1, 7, 0, true},      {3, 33, 5, false},
                                {13, 64, 0, true},   {29, 100, 28, true},  {1, 384, 0, false},
                                {211, 384, 0, true}, {512, 1536, 0, false}};

// `to` is separate memory or, in place, the same as `from`.
void place(OpCaseMaker& maker, const ElementShape& s, const char* to, const char* from) {
  if (s.in_place) {
    maker.view(to, from, 0, s.cols);
  } else {
    maker.result(to, s.rows, s.cols, s.gap);
  }
}

// relu has no derivative at 0: no input within reach of a finite difference step.
void away_from_zero(OpBuffer& buffer) {
  for (float& x : buffer.values.own()) {
    if (std::abs(x) < 0.0625f) x = std::copysign(0.125f, x);
  }
}

// Among few values one may be so near a tie that its last bit differs: once in a thousand.
double rounded_tolerance(int64_t count) {
  return std::max(kRounded, 0x1p-7 * std::min(1.0, 3 / std::sqrt(double(count))));
}

void run_activation(Backend& backend, OpData& t) {
  backend.activation(t.activation(), t["x"], t["y"]);
}
void run_activation_backward(Backend& backend, OpData& t) {
  backend.activation_backward(t.activation(), t["x"], t["dy"], t["dx"], {});
}
void run_activation_again(Backend& backend, OpData& t) {
  backend.activation_backward(t.activation(), t["x"], t["dy"], t["dx"], t["y"]);
}

// Kernels that cannot sum what they have before it is rounded sum what they wrote.
constexpr double kSumOfRounded = 2.5e-3;

// No, one, few and many rows; columns of MiniLM, base and large, and odd ones.
void add_activation_sum_cases(std::vector<OpCase>& table, Activation f, const char* name) {
  for (const ElementShape& s : {ElementShape{0, 64, 0, false},
                                {1, 1536, 0, true},
                                {3, 33, 5, false},
                                {29, 100, 28, true},
                                {9, 3072, 0, true},
                                {211, 384, 0, true},
                                {5, 4096, 0, false},
                                {2070, 264, 0, true}}) {
    for (bool accumulate : {false, true}) {
      OpCaseMaker maker("activation_backward",
                        concat(name, " ", s.text(), ", sums", accumulate ? " added" : ""),
                        std::max(8e-7, sum_tolerance(s.rows)), "float sums over the rows");
      maker.input("x", s.rows, s.cols, s.gap, 6).input("dy", s.rows, s.cols, s.gap);
      place(maker, s, "dx", "dy");
      place(maker, s, "y", "x");
      accumulate ? maker.input("sums", 1, s.cols) : maker.result("sums", 1, s.cols);
      maker.get().activation = f;
      maker.run(
          [accumulate](Backend& backend, OpData& t) {
            backend.activation_backward(t.activation(), t["x"], t["dy"], t["dx"], t["y"], t["sums"],
                                        accumulate);
          },
          s.rows == 0 ? std::vector<std::string>{"sums"}
                      : std::vector<std::string>{"dx", "y", "sums"});
      table.push_back(with_sums(maker));
      table.push_back(with_sums(
          in_bf16(maker, {"x", "y", "dy", "dx"},
                  rounded_tolerance(std::max<int64_t>(1, s.rows * s.cols)), kRoundedReason),
          kSumOfRounded));
    }
  }
}

void add_activation_cases(std::vector<OpCase>& table, Activation f, const char* name) {
  constexpr const char* kReason = "a few roundings and a float approximation of the function";
  for (const ElementShape& s : kShapes) {
    const std::string shape = concat(name, " ", s.text());
    // A single value may lie in the tail of gelu_tanh, x * sigmoid(v) with |v| up to 25: three
    // roundings of v, 6e-8 each, count 25 times. Among many values the large ones decide.
    const bool tail = s.rows * s.cols == 1 && f == Activation::gelu_tanh;
    OpCaseMaker forward("activation", shape, tail ? 4.5e-6 : 4e-7, kReason);
    forward.input("x", s.rows, s.cols, s.gap, 6).work(double(s.rows * s.cols));
    place(forward, s, "y", "x");
    forward.get().activation = f;
    table.push_back(forward.run(run_activation, {"y"}));
    table.push_back(
        in_bf16(table.back(), {"x", "y"}, rounded_tolerance(s.rows * s.cols), kRoundedReason));

    OpCaseMaker backward("activation_backward", shape, 8e-7, kReason);
    backward.input("x", s.rows, s.cols, s.gap, 6).input("dy", s.rows, s.cols, s.gap);
    backward.result("y", s.rows, s.cols).work(double(s.rows * s.cols));
    if (f == Activation::relu) away_from_zero(backward.get().buffers["x"]);
    place(backward, s, "dx", "dy");
    backward.get().activation = f;
    table.push_back(backward.run(run_activation_backward, {"dx"})
                        .gradient_of(run_activation, {{"y", "dy"}}, {{"x", "dx"}}));
    table.push_back(in_bf16(table.back(), {"x", "y", "dy", "dx"},
                            rounded_tolerance(s.rows * s.cols), kRoundedReason));

    OpCaseMaker again("activation_backward", shape + ", f(x) again", tail ? 4.5e-6 : 8e-7, kReason);
    again.input("x", s.rows, s.cols, s.gap, 6).input("dy", s.rows, s.cols, s.gap);
    again.work(double(s.rows * s.cols));
    place(again, s, "dx", "dy");
    place(again, s, "y", "x");
    again.get().activation = f;
    table.push_back(again.run(run_activation_again, {"dx", "y"}));
    table.push_back(in_bf16(table.back(), {"x", "y", "dy", "dx"},
                            rounded_tolerance(s.rows * s.cols), kRoundedReason));
  }
}

// The first product of a gated feed-forward block: (R, 2N). Gradients overwrite it, and the result
// its own gradient, as in the model; in inference the result overwrites the first half.
void add_gated_cases(std::vector<OpCase>& table, Activation f, const char* name) {
  constexpr const char* kReason = "a few roundings and a float approximation of the function";
  constexpr int64_t kFirstColumn = 77;
  for (const ElementShape& s : kShapes) {
    for (double p : {0.0, 0.2}) {
      const Dropout dropout = Dropout::make(p, derive_key(5, 22), 4);
      const std::string shape = concat(name, " ", s.text(), " p ", p);
      auto run = [dropout](Backend& backend, OpData& t) {
        backend.gated_activation(t.activation(), t["x"], t.streamed(dropout), t.names(),
                                 kFirstColumn, t["y"]);
      };
      auto backward = [dropout](Backend& backend, OpData& t) {
        backend.gated_activation_backward(t.activation(), t["x"], t["dy"], t.streamed(dropout),
                                          t.names(), kFirstColumn, t["dx"], t["again"]);
      };
      auto start = [&](const char* op, double tolerance) {
        OpCaseMaker maker(op, shape, tolerance, kReason);
        maker.input("x", s.rows, 2 * s.cols, s.gap, 4).work(double(2 * s.rows * s.cols));
        if (f == Activation::relu) away_from_zero(maker.get().buffers["x"]);
        if (p > 0) maker.row_names(s.rows);
        if (p > 0 && s.in_place) maker.stream(dropout);
        maker.get().activation = f;
        return maker;
      };
      OpCaseMaker forward = start("gated_activation", 1e-6);
      place(forward, s, "y", "x");
      table.push_back(forward.run(run, {"y"}));
      table.push_back(
          in_bf16(table.back(), {"x", "y"}, rounded_tolerance(s.rows * s.cols), kRoundedReason));
      OpCaseMaker gradient = start("gated_activation_backward", 1.5e-6);
      gradient.result("y", s.rows, s.cols).input("dy", s.rows, s.cols, s.gap);
      gradient.result("dx", s.rows, 2 * s.cols, s.gap).result("again", s.rows, s.cols, s.gap);
      table.push_back(
          gradient.run(backward, {"dx", "again"}).gradient_of(run, {{"y", "dy"}}, {{"x", "dx"}}));
      table.push_back(in_bf16(table.back(), {"x", "y", "dy", "dx", "again"},
                              rounded_tolerance(s.rows * s.cols), kRoundedReason));
      OpCaseMaker places = start("gated_activation_backward", 1.5e-6);
      places.get().shape += " in place";
      places.input("dy", s.rows, s.cols, s.gap).view("dx", "x", 0, 2 * s.cols);
      places.view("again", "dy", 0, s.cols);
      table.push_back(places.run(backward, {"dx", "again"}));
    }
  }
}

}  // namespace

void add_elementwise_cases(std::vector<OpCase>& table) {
  add_activation_cases(table, Activation::gelu, "gelu");
  add_activation_cases(table, Activation::gelu_tanh, "gelu_tanh");
  add_activation_sum_cases(table, Activation::gelu, "gelu");
  add_activation_sum_cases(table, Activation::relu, "relu");
  add_activation_cases(table, Activation::relu, "relu");
  add_activation_cases(table, Activation::silu, "silu");
  add_activation_cases(table, Activation::tanh, "tanh");
  add_gated_cases(table, Activation::gelu, "gelu");
  add_gated_cases(table, Activation::silu, "silu");
  add_gated_cases(table, Activation::relu, "relu");
  for (const ElementShape& s : kShapes) {
    for (double p : {0.0, 0.1, 0.5}) {
      Dropout dropout = Dropout::make(p, derive_key(7, 21), 3);
      OpCaseMaker maker("dropout", concat("p ", p, " ", s.text()), 1.2e-7, "one rounding");
      maker.input("x", s.rows, s.cols, s.gap).input("dy", s.rows, s.cols, s.gap);
      maker.result("y", s.rows, s.cols).work(double(s.rows * s.cols));
      if (p > 0) maker.row_names(s.rows);
      if (p == 0.5) maker.stream(dropout);
      place(maker, s, "dx", "dy");
      table.push_back(maker
                          .run(
                              [dropout](Backend& backend, OpData& t) {
                                backend.dropout(t["dy"], t.streamed(dropout), t.names(), t["dx"]);
                              },
                              {"dx"})
                          .gradient_of(
                              [dropout](Backend& backend, OpData& t) {
                                backend.dropout(t["x"], t.streamed(dropout), t.names(), t["y"]);
                              },
                              {{"y", "dy"}}, {{"x", "dx"}}));
    }
    if (s.in_place) continue;
    table.push_back(
        OpCaseMaker("add", s.text(), 1.2e-7, "one rounding")
            .input("x", s.rows, s.cols, s.gap)
            .input("y", s.rows, s.cols, s.gap)
            .work(double(s.rows * s.cols))
            .run([](Backend& backend, OpData& t) { backend.add(t["x"], t["y"]); }, {"y"}));
  }
}

}  // namespace finetune::test

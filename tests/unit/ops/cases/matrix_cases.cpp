// Op table: the three matrix products of a linear layer.
#include "core/text/text.h"
#include "op_case.h"

namespace finetune::test {
namespace {

constexpr const char* kProductReason = "random walk of rounding in a float sum";

struct ProductShape {
  int64_t rows, in, out;
  int64_t gap;  // of the strided views
  bool bias;
  std::string text() const {
    return concat("(", rows, ",", in, ")x(", out, ",", in, ") gap ", gap, bias ? " bias" : "");
  }
};

// Shared by all three products: x, w, bias and y, dy.
OpCaseMaker start(const char* op, const ProductShape& s, int64_t terms) {
  OpCaseMaker maker(op, s.text(), sum_tolerance(terms), kProductReason);
  maker.input("x", s.rows, s.in, s.gap).input("w", s.out, s.in, s.gap);
  if (s.bias) maker.input("bias", 1, s.out);
  return maker.work(double(s.rows) * double(s.in) * double(s.out));
}

void forward(Backend& backend, OpData& t) {
  backend.linear(t["x"], t["w"], t["bias"], t["y"]);
}

OpCase weight_gradient(const ProductShape& s, bool accumulate) {
  auto maker = start("linear_backward_weight", s, s.rows)
                   .result("y", s.rows, s.out)
                   .input("dy", s.rows, s.out, s.gap);
  auto target = [&](const char* name, int64_t rows, int64_t cols, int64_t gap) {
    accumulate ? maker.input(name, rows, cols, gap) : maker.result(name, rows, cols, gap);
  };
  if (accumulate) maker.get().shape += " accumulate";
  target("dw", s.out, s.in, s.gap);
  std::vector<std::string> outputs{"dw"};
  std::vector<OpGradient> gradients{{"w", "dw", accumulate}};
  if (s.bias) {
    target("dbias", 1, s.out, 0);
    outputs.push_back("dbias");
    gradients.push_back({"bias", "dbias", accumulate});
  }
  return maker
      .run(
          [accumulate](Backend& backend, OpData& t) {
            backend.linear_backward_weight(t["dy"], t["x"], t["dw"], t["dbias"], accumulate);
          },
          outputs)
      .gradient_of(forward, {{"y", "dy"}}, gradients);
}

// The case with operands and results in bf16: all of them, and each alone.
void add_bf16(std::vector<OpCase>& table, const OpCase& c, const std::string& operand,
              const std::string& other) {
  const std::vector<std::vector<std::string>> choices = {{operand, other}, {operand}, {other}};
  for (const auto& buffers : choices) {
    table.push_back(in_bf16(c, buffers, kRounded, kRoundedReason));
  }
}

}  // namespace

void add_matrix_cases(std::vector<OpCase>& table) {
  const ProductShape shapes[] = {
      {1, 1, 1, 0, false},      {1, 7, 33, 0, true},       {1, 64, 64, 0, true},
      {3, 33, 7, 5, true},      {17, 64, 192, 64, true},   {53, 100, 64, 0, false},
      {2, 64, 1, 0, true},      {300, 64, 2, 1, true},     {7, 384, 24, 0, true},
      {32, 384, 384, 0, true},  {419, 384, 1152, 0, true}, {5, 1536, 384, 0, true},
      {512, 33, 100, 3, true},  {1025, 100, 7, 0, false},  {70, 1100, 40, 0, true},
      {4200, 1024, 8, 0, true}, {60, 72, 102, 0, true},    {60, 72, 100, 0, true},
      {60, 72, 97, 0, true},    {200, 320, 2, 0, true},
  };
  for (const ProductShape& s : shapes) {
    table.push_back(start("linear", s, s.in).result("y", s.rows, s.out, s.gap).run(forward, {"y"}));
    const OpCase product = table.back();
    add_bf16(table, product, "x", "y");
    table.push_back(in_bf16(product, {"x", "w", "y"}, kRounded, kRoundedReason));
    // So many columns are for the forward product, whose operand the CPU packs in chunks.
    ProductShape back = s;
    if (s.rows > 4000) back.in = 72;
    for (bool accumulate : {false, true}) {
      auto maker = start("linear_backward_input", back, back.out)
                       .result("y", back.rows, back.out)
                       .input("dy", back.rows, back.out, back.gap);
      if (accumulate) {
        maker.input("dx", back.rows, back.in, back.gap).get().shape += " accumulate";
      } else {
        maker.result("dx", back.rows, back.in, back.gap);
      }
      table.push_back(maker
                          .run(
                              [accumulate](Backend& backend, OpData& t) {
                                backend.linear_backward_input(t["dy"], t["w"], t["dx"], accumulate);
                              },
                              {"dx"})
                          .gradient_of(forward, {{"y", "dy"}}, {{"x", "dx", accumulate}}));
      if (accumulate) {
        table.push_back(in_bf16(table.back(), {"dy"}, kRounded, kRoundedReason));
      } else {
        add_bf16(table, OpCase(table.back()), "dy", "dx");
      }
    }
    for (bool accumulate : {false, true}) {
      table.push_back(weight_gradient(back, accumulate));
      add_bf16(table, OpCase(table.back()), "dy", "x");
    }
  }
}

}  // namespace finetune::test

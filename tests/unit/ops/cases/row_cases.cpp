// Gathered rows, embeddings, layer normalisation.
#include <algorithm>
#include <numeric>

#include "core/text/text.h"
#include "op_case.h"

namespace finetune::test {
namespace {

void add_gather_cases(std::vector<OpCase>& table) {
  struct Shape {
    int64_t rows, cols, gap;
    std::vector<int32_t> index;
  };
  const Shape shapes[] = {{1, 7, 0, {0}},
                          {33, 64, 0, {32, 0, 5}},
                          {100, 33, 31, {0, 7, 8, 50, 99}},
                          {211, 384, 768, {0, 16, 30, 41, 100, 210}}};
  for (const Shape& s : shapes) {
    const int64_t count = int64_t(s.index.size());
    const std::string shape = concat(count, " of (", s.rows, ",", s.cols, ") gap ", s.gap);
    auto gather = [](Backend& backend, OpData& t) {
      backend.gather_rows(t["x"], t.ints("index"), t["y"]);
    };
    table.push_back(OpCaseMaker("gather_rows", shape, 0, "a copy")
                        .input("x", s.rows, s.cols, s.gap)
                        .result("y", count, s.cols)
                        .integers("index", s.index)
                        .run(gather, {"y"}));
    table.push_back(
        OpCaseMaker("scatter_rows_add", shape, 1.2e-7, "one rounding")
            .input("x", s.rows, s.cols)
            .input("dx", s.rows, s.cols, s.gap)
            .result("y", count, s.cols)
            .input("dy", count, s.cols)
            .integers("index", s.index)
            .run([](Backend& backend,
                    OpData& t) { backend.scatter_rows_add(t["dy"], t.ints("index"), t["dx"]); },
                 {"dx"})
            .gradient_of(gather, {{"y", "dy"}}, {{"x", "dx", true}}));
    // All of y is compared: other rows must not change.
    table.push_back(
        OpCaseMaker("scatter_rows", shape, 0, "a copy")
            .input("x", count, s.cols)
            .input("y", s.rows, s.cols, s.gap)
            .integers("index", s.index)
            .run([](Backend& backend,
                    OpData& t) { backend.scatter_rows(t["x"], t.ints("index"), t["y"]); },
                 {"y"}));
  }
}

void add_embedding_cases(std::vector<OpCase>& table) {
  struct Shape {
    int64_t tokens, hidden, words, positions;
    bool from_last = false;  // positions descend: the first tokens are at the last ones
    int64_t types = 2;       // 0: the table is absent
    bool placed = true;      // false: the table of positions is absent
  };
  // With one or two words there are runs of equal ids longer than a GPU's warp or block, and runs
  // that end where a warp's search turns. With three positions many tokens share each. From the
  // last position on: sequences need not begin at row 0 of the table.
  for (const Shape& s : {Shape{1, 7, 5, 3},
                         {17, 33, 11, 20},
                         {32, 5, 1, 40},
                         {33, 5, 1, 40},
                         {34, 5, 1, 40},
                         {600, 270, 2, 64},
                         {1057, 5, 1, 512},
                         {1100, 5, 1, 512},
                         {300, 40, 50, 3},
                         {53, 64, 300, 64},
                         {419, 384, 97, 512},
                         {512, 100, 4000, 512},
                         {1, 7, 5, 3, true},
                         {17, 33, 11, 20, true},
                         {53, 64, 300, 512, true},
                         {17, 33, 11, 20, true, 0},
                         {419, 384, 97, 512, false, 0},
                         {17, 33, 11, 20, false, 2, false},
                         {419, 384, 97, 512, false, 0, false}}) {
    const std::string shape =
        concat(s.tokens, " tokens, tables (", s.words, ",", s.hidden, "), (", s.positions, ",",
               s.hidden, ")", s.from_last ? ", from the last position" : "",
               s.types == 0 ? ", without types" : "", s.placed ? "" : ", without positions");
    std::vector<int32_t> ids, positions, types, order(static_cast<size_t>(s.tokens));
    for (int32_t t = 0; t < s.tokens; ++t) {
      PhiloxBlock bits = philox({uint32_t(s.tokens), 1}, {uint32_t(t), 0, 0, 0});
      ids.push_back(int32_t(bits[0] % uint32_t(s.words)));
      const int64_t position = t % s.positions;
      positions.push_back(int32_t(s.from_last ? s.positions - 1 - position : position));
      types.push_back(int32_t(bits[1] % 2));
    }
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return ids[size_t(a)] < ids[size_t(b)]; });
    auto embed = [](Backend& backend, OpData& t) {
      backend.embed(t.ints("ids"), t.uints("positions"), t.ints("types"), t["word"], t["position"],
                    t["type"], t["y"]);
    };
    auto start = [&](const char* op, double tolerance, const char* reason) {
      OpCaseMaker maker(op, shape, tolerance, reason);
      maker.integers("ids", ids)
          .integers("positions", positions)
          .integers("types", types)
          .integers("order", order)
          .work(double(s.tokens * s.hidden))
          .input("word", s.words, s.hidden)
          .result("y", s.tokens, s.hidden);
      if (s.placed) maker.input("position", s.positions, s.hidden);
      if (s.types > 0) maker.input("type", s.types, s.hidden);
      return maker;
    };
    table.push_back(start("embed", 2.4e-7, "two roundings").run(embed, {"y"}));
    auto backward = [](Backend& backend, OpData& t) {
      backend.embed_backward(t["dy"], t.ints("ids"), t.uints("positions"), t.ints("types"),
                             t.ints("order"), t["dword"], t["dposition"], t["dtype"]);
    };
    std::vector<std::string> outputs = {"dword"};
    std::vector<OpGradient> gradients = {{"word", "dword", true}};
    OpCaseMaker maker =
        start("embed_backward", sum_tolerance(s.tokens), "random walk of rounding in a float sum");
    maker.input("dy", s.tokens, s.hidden).input("dword", s.words, s.hidden);
    if (s.placed) {
      maker.input("dposition", s.positions, s.hidden);
      outputs.push_back("dposition");
      gradients.push_back({"position", "dposition", true});
    }
    if (s.types > 0) {
      maker.input("dtype", s.types, s.hidden);
      outputs.push_back("dtype");
      gradients.push_back({"type", "dtype", true});
    }
    table.push_back(maker.run(backward, outputs).gradient_of(embed, {{"y", "dy"}}, gradients));
  }
}

struct NormShape {
  int64_t rows, cols, gap;
  std::string text() const { return concat("(", rows, ",", cols, ") gap ", gap); }
};

const NormShape kNormShapes[] = {{1, 7, 0},     {3, 33, 5},   {17, 64, 0},   {53, 100, 28},
                                 {1, 384, 0},   {512, 64, 0}, {211, 384, 0}, {130, 1024, 0},
                                 {5, 768, 0},   {3, 2100, 4}, {5, 1536, 0},  {3, 2304, 0},
                                 {2070, 264, 0}};
constexpr float kEpsilon = 1e-12f;
constexpr const char* kNormReason = "sums over a row, a square root and a division in float";

void add_layer_norm_forward(std::vector<OpCase>& table, const NormShape& s, double p, bool residual,
                            const std::string& keeps, bool rounded = false, bool beta = true) {
  const Dropout dropout = Dropout::make(p, derive_key(11, 34), 2);
  OpCaseMaker maker("add_layer_norm",
                    concat(s.text(), " p ", p, residual ? " residual" : "", " s: ", keeps,
                           beta ? "" : ", no beta"),
                    sum_tolerance(s.cols), kNormReason);
  maker.input("x", s.rows, s.cols, s.gap).input("gamma", 1, s.cols);
  if (beta) maker.input("beta", 1, s.cols);
  maker.result("y", s.rows, s.cols, s.gap).work(double(s.rows * s.cols));
  if (p > 0) maker.row_names(s.rows);
  if (p > 0 && keeps == "own") maker.stream(dropout);
  if (residual) maker.input("residual", s.rows, s.cols, s.gap);
  std::vector<std::string> outputs{"y"};
  if (rounded) {
    maker.result("rounded", s.rows, s.cols, s.gap);
    outputs.push_back("rounded");
  }
  if (keeps != "absent") {
    maker.result("stats", s.rows, 2);
    if (keeps == "own") {
      maker.result("s", s.rows, s.cols, s.gap);
    } else {
      maker.view("s", keeps, 0, s.cols);
    }
    outputs.insert(outputs.end(), {"s", "stats"});
  }
  table.push_back(maker.run(
      [dropout](Backend& backend, OpData& t) {
        backend.add_layer_norm(t["x"], t["residual"], t.streamed(dropout), t.names(), t["gamma"],
                               t["beta"], kEpsilon, t["s"], t["stats"], t["y"], t["rounded"]);
      },
      outputs));
  if (rounded) table.back() = in_bf16(table.back(), {"rounded"}, kRounded, kRoundedReason);
}

// `places` of ds and dx: "own", "in dy" (ds is dy), "no dx", "same" (dx is ds). Cases without dx
// overwrite dgamma and dbeta. `sums`: of the columns of dx too.
void add_layer_norm_backward(std::vector<OpCase>& table, const NormShape& s, double p,
                             const std::string& places, bool beta = true, bool sums = false) {
  const Dropout dropout = Dropout::make(p, derive_key(11, 34), 2);
  OpCaseMaker maker(
      "add_layer_norm_backward",
      concat(s.text(), " p ", p, " ", places, beta ? "" : ", no beta", sums ? ", sums" : ""),
      sum_tolerance(std::max(s.cols, s.rows)), kNormReason);
  maker.input("x", s.rows, s.cols).input("residual", s.rows, s.cols).input("gamma", 1, s.cols);
  std::vector<std::string> outputs{"ds", "dgamma"};
  maker.result("s", s.rows, s.cols, s.gap).result("stats", s.rows, 2).result("y", s.rows, s.cols);
  maker.input("dy", s.rows, s.cols, s.gap);
  const bool accumulate = places != "no dx";
  std::vector<OpGradient> gradients{{"residual", "ds"}, {"gamma", "dgamma", accumulate}};
  if (beta) {
    maker.input("beta", 1, s.cols);
    outputs.push_back("dbeta");
    gradients.push_back({"beta", "dbeta", accumulate});
  }
  if (sums) outputs.push_back("sums");
  for (const std::string name : {"dgamma", "dbeta", "sums"}) {
    if ((!beta && name == "dbeta") || (!sums && name == "sums")) continue;
    accumulate ? maker.input(name, 1, s.cols) : maker.result(name, 1, s.cols);
  }
  maker.work(double(s.rows * s.cols));
  if (p > 0) maker.row_names(s.rows);
  if (p > 0 && places == "in dy") maker.stream(dropout);
  if (places == "in dy") {
    maker.view("ds", "dy", 0, s.cols);
  } else {
    maker.result("ds", s.rows, s.cols, s.gap);
  }
  if (places == "same") {
    maker.view("dx", "ds", 0, s.cols);
  } else if (places != "no dx") {
    maker.result("dx", s.rows, s.cols, s.gap);
    outputs.push_back("dx");
    gradients.push_back({"x", "dx"});
  }
  table.push_back(
      maker
          .run(
              [dropout, accumulate](Backend& backend, OpData& t) {
                backend.add_layer_norm_backward(t["dy"], t["s"], t["stats"], t["gamma"],
                                                t.streamed(dropout), t.names(), t["ds"], t["dx"],
                                                t["dgamma"], t["dbeta"], accumulate, t["sums"]);
              },
              outputs)
          .gradient_of(
              [dropout](Backend& backend, OpData& t) {
                backend.add_layer_norm(t["x"], t["residual"], t.streamed(dropout), t.names(),
                                       t["gamma"], t["beta"], kEpsilon, t["s"], t["stats"], t["y"]);
              },
              {{"y", "dy"}}, gradients));
  if (sums) table.back() = with_sums(table.back());
  if (places != "own") return;
  OpCase rounded = in_bf16(table.back(), {"dx"}, kRounded, kRoundedReason);
  // Kernels that cannot sum what they have before it is rounded sum what they wrote.
  table.push_back(sums ? with_sums(rounded, 2.5e-3) : rounded);
}

void add_rotation_cases(std::vector<OpCase>& table) {
  struct Shape {
    int64_t rows, heads, size, positions;
    bool in_place;
  };
  for (const Shape& s : {Shape{1, 1, 2, 1, false},
                         {7, 3, 10, 5, false},
                         {40, 4, 32, 17, true},
                         {211, 6, 64, 90, true}}) {
    for (bool back : {false, true}) {
      const int64_t cols = s.heads * s.size;
      OpCaseMaker maker("rotate",
                        concat("(", s.rows, ",", cols, ") heads of ", s.size, back ? " back" : "",
                               s.in_place ? " in place" : ""),
                        2.4e-7, "two roundings");
      std::vector<int32_t> positions;
      for (int64_t r = 0; r < s.rows; ++r) positions.push_back(int32_t(r * 7 % s.positions));
      maker.input("x", s.rows, cols, 5).input("table", s.positions, s.size);
      maker.integers("positions", positions).work(double(2 * s.rows * cols));
      maker.input("dy", s.rows, cols, 5).result("y", s.rows, cols);
      if (s.in_place) {
        maker.view("dx", "dy", 0, cols);
      } else {
        maker.result("dx", s.rows, cols, 3);
      }
      // The gradient is the rotation the other way.
      auto forward = [back](Backend& backend, OpData& t) {
        backend.rotate(t["x"], t.uints("positions"), t["table"], !back, t["y"]);
      };
      auto run = [back](Backend& backend, OpData& t) {
        backend.rotate(t["dy"], t.uints("positions"), t["table"], back, t["dx"]);
      };
      table.push_back(maker.run(run, {"dx"}).gradient_of(forward, {{"y", "dy"}}, {{"x", "dx"}}));
      table.push_back(in_bf16(table.back(), {"x", "dy", "y", "dx"}, 4e-3, kRoundedReason));
    }
  }
}

void add_mean_cases(std::vector<OpCase>& table) {
  for (const std::vector<int32_t>& offsets :
       {std::vector<int32_t>{0, 1}, {0, 3, 4, 133}, {0, 64, 65, 400}}) {
    for (int64_t cols : {7, 64, 300}) {
      const int64_t rows = offsets.back(), count = int64_t(offsets.size()) - 1;
      const std::string shape = concat(count, " segments of (", rows, ",", cols, ")");
      auto mean = [](Backend& backend, OpData& t) {
        backend.segment_mean(t["x"], t.segments("offsets"), t["y"]);
      };
      auto start = [&](const char* op, double tolerance, const char* reason) {
        OpCaseMaker maker(op, shape, tolerance, reason);
        maker.integers("offsets", offsets).work(double(rows * cols));
        maker.input("x", rows, cols, 3).result("y", count, cols);
        return maker;
      };
      table.push_back(start("segment_mean", sum_tolerance(rows), "a float sum").run(mean, {"y"}));
      table.push_back(start("segment_mean_backward", 1.2e-7, "one rounding")
                          .input("dy", count, cols)
                          .result("dx", rows, cols, 4)
                          .run(
                              [](Backend& backend, OpData& t) {
                                backend.segment_mean_backward(t["dy"], t.segments("offsets"),
                                                              t["dx"]);
                              },
                              {"dx"})
                          .gradient_of(mean, {{"y", "dy"}}, {{"x", "dx"}}));
    }
  }
}

void add_tap_cases(std::vector<OpCase>& table) {
  for (int64_t taps : {1, 3, 5}) {
    const int64_t rows = 29, cols = 11;
    const auto forward = [taps](Backend& backend, OpData& t) {
      backend.gather_taps(t["x"], t.segments("offsets"), taps, t["y"]);
    };
    const auto start = [&](const char* op) {
      OpCaseMaker maker(op, concat(taps, " taps"), 1.2e-7, "a few additions");
      maker.integers("offsets", {0, 1, 3, 20, 29}).work(double(rows * cols * taps));
      maker.input("x", rows, cols, 3).result("y", rows, cols * taps);
      return maker;
    };
    table.push_back(start("gather_taps").run(forward, {"y"}));
    table.push_back(start("gather_taps_backward")
                        .input("dy", rows, cols * taps)
                        .result("dx", rows, cols, 4)
                        .run(
                            [taps](Backend& backend, OpData& t) {
                              backend.gather_taps_backward(t["dy"], t.segments("offsets"), taps,
                                                           t["dx"]);
                            },
                            {"dx"})
                        .gradient_of(forward, {{"y", "dy"}}, {{"x", "dx"}}));
  }
}

}  // namespace

void add_row_cases(std::vector<OpCase>& table) {
  add_tap_cases(table);
  add_gather_cases(table);
  add_embedding_cases(table);
  add_rotation_cases(table);
  add_mean_cases(table);
  for (const NormShape& s : kNormShapes) {
    for (double p : {0.0, 0.1}) {
      add_layer_norm_forward(table, s, p, true, "own");
      add_layer_norm_forward(table, s, p, true, "x");
      add_layer_norm_forward(table, s, p, true, "residual");
      add_layer_norm_forward(table, s, p, true, "absent");
      add_layer_norm_forward(table, s, p, true, "x", true);
      add_layer_norm_forward(table, s, p, false, "absent", true);
      add_layer_norm_forward(table, s, p, false, "own");
      add_layer_norm_forward(table, s, p, false, "absent");
      add_layer_norm_backward(table, s, p, "own");
      add_layer_norm_backward(table, s, p, "in dy");
      add_layer_norm_backward(table, s, p, "no dx");
      add_layer_norm_backward(table, s, p, "own", true, true);
    }
    add_layer_norm_backward(table, s, 0, "same");
    add_layer_norm_backward(table, s, 0, "same", true, true);
    add_layer_norm_backward(table, s, 0, "no dx", false, true);
    add_layer_norm_forward(table, s, 0, false, "own", false, false);
    add_layer_norm_backward(table, s, 0, "in dy", false);
    add_layer_norm_backward(table, s, 0, "no dx", false);
  }
}

}  // namespace finetune::test

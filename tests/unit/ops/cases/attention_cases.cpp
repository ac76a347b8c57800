// Op table: attention and its gradients.
#include <cmath>
#include <numeric>

#include "core/text/text.h"
#include "op_case.h"
#include "ops/library_attention.h"

namespace finetune::test {
namespace {

struct Case {
  int64_t heads, head_size;
  std::vector<int32_t> lengths;  // of the sequences
  bool first_only;               // one query per sequence, as in the last layer of classification
  double dropout;
  int64_t first_head = 0;  // of the model's heads
  bool bias = false;       // a position bias
  int64_t window = -1;

  int64_t hidden() const { return heads * head_size; }
  int64_t count() const { return int64_t(lengths.size()); }
  int64_t tokens() const { return std::accumulate(lengths.begin(), lengths.end(), int64_t{0}); }
  int64_t query_rows() const { return first_only ? count() : tokens(); }
  int64_t longest() const { return *std::max_element(lengths.begin(), lengths.end()); }
  double work() const {
    double total = 0;
    for (int32_t n : lengths) total += 2.0 * n * (first_only ? 1 : n) * double(hidden());
    return total;
  }
  std::string text() const {
    std::string all;
    for (int32_t n : lengths) all += concat(" ", n);
    return concat(heads, " heads of ", head_size, ", lengths", all,
                  first_only ? ", first queries" : "", ", p ", dropout,
                  first_head > 0 ? concat(", from head ", first_head) : "", bias ? ", bias" : "",
                  window >= 0 ? concat(", window ", window) : "");
  }
};

AttentionShape shape_of(const Case& c, const OpData& t) {
  AttentionShape shape;
  shape.heads = c.heads;
  shape.head_size = c.head_size;
  shape.scale = float(1.0 / std::sqrt(double(c.head_size)));
  shape.queries = t.segments("query offsets");
  shape.keys = t.segments("key offsets");
  shape.samples = t.uints("samples");
  shape.first_head = c.first_head;
  shape.window = c.window;
  return shape;
}

// With the values that the table gives; `gradient` false: that of the bias is not wanted.
AttentionShape biased_shape(const Case& c, Backend& backend, OpData& t, bool gradient) {
  AttentionShape shape = shape_of(c, t);
  if (!c.bias) return shape;
  const Tensor values = t["bias values"];
  backend.position_bias(t["table"], values);
  shape.bias.values = values.f32();
  shape.bias.span = (values.cols + 1) / 2;
  if (!gradient) return shape;
  shape.bias.gradient = t["dvalues"].f32();
  shape.bias.gradient_stride = 2 * c.tokens();
  return shape;
}

Dropout dropout_of(const Case& c) {
  return Dropout::make(c.dropout, derive_key(3, 20), 9);
}

// Operands are arranged as in the model: q, k and v side by side in (T, 3H); for first queries q
// alone, and k and v as the last columns of (T, 3H).
OpCaseMaker start(const char* op, const Case& c, double factor) {
  OpCaseMaker maker(op, c.text(), factor * sum_tolerance(c.head_size + c.longest()),
                    "float sums over head_size and keys, and a float exponential");
  const int64_t h = c.hidden();
  maker.input("qkv", c.tokens(), 3 * h, 0, 2);
  if (c.first_only) {
    maker.input("q", c.count(), h, 0, 2);
  } else {
    maker.view("q", "qkv", 0, h);
  }
  maker.view("k", "qkv", h, h).view("v", "qkv", 2 * h, h);
  maker.result("lse", c.heads, c.query_rows()).result("out", c.query_rows(), h);
  if (c.bias) {
    maker.input("table", kPositionBuckets, c.heads, 0, 2);
    maker.result("bias values", c.heads, 2 * c.longest() + 5);  // wider than it needs to be
  }
  std::vector<int32_t> keys{0}, queries{0}, samples;
  for (int32_t n : c.lengths) {
    keys.push_back(keys.back() + n);
    queries.push_back(queries.back() + (c.first_only ? 1 : n));
    samples.push_back(int32_t(c.count() + 3 - int64_t(samples.size())));
  }
  maker.integers("query offsets", queries).integers("key offsets", keys);
  if (c.dropout > 0 && c.first_only) maker.stream(dropout_of(c));
  return maker.integers("samples", samples).work(c.work());
}

constexpr double kRoundedInside = 4e-3;
constexpr const char* kRoundedInsideReason =
    "results, probabilities and their gradients are rounded to bf16";
// dS = P * (dP - D), D = sum of dout * out: rounding of out matters more, the more keys share the
// probability.
double backward_tolerance(const Case& c) {
  return std::max(1.5 * kRoundedInside, 1e-3 * std::sqrt(double(c.longest())));
}

// Not for a library with its own masks, which are unknown here (fused_attention_tests.cpp).
OpCase with_our_masks(OpCase op_case, const Case& c) {
  if (c.dropout == 0 || c.first_only || c.window >= 0 ||
      c.longest() <= library_attention::kOwnLength)
    return op_case;
  const OpOffered offered = op_case.offered;
  op_case.offered = [offered](const Backend& backend) {
    return offered(backend) && !backend.library_attention();
  };
  return op_case;
}

void add_case(std::vector<OpCase>& table, const Case& c) {
  const Dropout dropout = dropout_of(c);
  const int64_t h = c.hidden();
  auto forward = [c, dropout](Backend& backend, OpData& t) {
    backend.attention(biased_shape(c, backend, t, false), t.streamed(dropout), t["q"], t["k"],
                      t["v"], t["out"], t["lse"]);
  };
  std::vector<std::string> outputs{"out", "lse"}, gradients{"dq", "dk", "dv"};
  if (c.bias) {
    outputs.push_back("bias values");
    for (const char* name : {"bias values", "dvalues", "dtable"}) gradients.push_back(name);
  }
  table.push_back(start("attention", c, 1).run(forward, outputs));
  table.push_back(with_our_masks(
      in_bf16(table.back(), {"qkv", "q", "out"}, kRoundedInside, kRoundedInsideReason), c));
  OpCaseMaker inference = start("attention", c, 1);
  inference.get().views.erase("lse");
  inference.get().shape += ", inference";
  outputs.erase(outputs.begin() + 1);
  table.push_back(inference.run(forward, outputs));
  table.push_back(with_our_masks(
      in_bf16(table.back(), {"qkv", "q", "out"}, kRoundedInside, kRoundedInsideReason), c));

  OpCaseMaker backward = start("attention_backward", c, 4);
  backward.result("dqkv", c.tokens(), 3 * h).input("dout", c.query_rows(), h);
  if (c.first_only) {
    backward.result("dq", c.count(), h);
  } else {
    backward.view("dq", "dqkv", 0, h);
  }
  backward.view("dk", "dqkv", h, h).view("dv", "dqkv", 2 * h, h);
  std::vector<OpGradient> of_inputs{{"q", "dq"}, {"k", "dk"}, {"v", "dv"}};
  if (c.bias) {
    // Between two sequences there is a place without a distance.
    backward.constant("dvalues", c.heads, 2 * c.tokens(), 0)
        .result("dtable", kPositionBuckets, c.heads);
    of_inputs.push_back({"table", "dtable"});
  }
  auto run_backward = [c, dropout](Backend& backend, OpData& t) {
    const AttentionShape shape = biased_shape(c, backend, t, true);
    backend.attention_backward(shape, t.streamed(dropout), t["q"], t["k"], t["v"], t["out"],
                               t["lse"], t["dout"], t["dq"], t["dk"], t["dv"]);
    if (c.bias) {
      backend.position_bias_backward(t["dvalues"], shape.keys, t["dtable"], false);
    }
  };
  table.push_back(
      backward.run(run_backward, gradients).gradient_of(forward, {{"out", "dout"}}, of_inputs));
  table.push_back(with_our_masks(in_bf16(table.back(), {"qkv", "q", "out", "dout", "dqkv", "dq"},
                                         backward_tolerance(c), kRoundedInsideReason),
                                 c));
}

void add_position_bias_cases(std::vector<OpCase>& table) {
  for (int64_t heads : {1, 5, 12}) {
    for (int64_t span : {1, 9, 200}) {
      const std::string shape = concat(heads, " heads, span ", span);
      table.push_back(OpCaseMaker("position_bias", shape, 0, "a copy")
                          .input("table", kPositionBuckets, heads)
                          .result("values", heads, 2 * span - 1)
                          .run([](Backend& backend,
                                  OpData& t) { backend.position_bias(t["table"], t["values"]); },
                               {"values"}));
      for (bool accumulate : {false, true}) {
        const int32_t end = int32_t(span + 4);
        OpCaseMaker maker("position_bias_backward", concat(shape, accumulate ? ", added" : ""),
                          1.2e-7, "one rounding of sums in double precision");
        maker.input("dvalues", heads, 2 * end).integers("keys", {0, 1, int32_t(span + 1), end});
        accumulate ? maker.input("dtable", kPositionBuckets, heads)
                   : maker.result("dtable", kPositionBuckets, heads);
        table.push_back(maker.run(
            [accumulate](Backend& backend, OpData& t) {
              backend.position_bias_backward(t["dvalues"], t.segments("keys"), t["dtable"],
                                             accumulate);
            },
            {"dtable"}));
      }
    }
  }
}

}  // namespace

void add_attention_cases(std::vector<OpCase>& table) {
  add_position_bias_cases(table);
  std::vector<int32_t> many_short;
  for (int32_t i = 0; i < 24; ++i) many_short.push_back(1 + i * 7 % 13);
  const Case shapes[] = {
      {1, 7, {1}, false, 0},
      {2, 32, {1, 1, 1}, false, 0},
      {3, 11, {7, 1, 33}, false, 0},
      {2, 32, {17, 9, 16, 1}, false, 0},
      {4, 25, {5, 31}, false, 0},
      {2, 64, {100, 3, 65}, false, 0},
      {12, 32, {13, 13, 8}, false, 0},
      {1, 64, {261}, false, 0},
      {2, 32, {200, 129, 1}, false, 0},
      {4, 24, {130, 5}, false, 0},        // no own kernel on tensor cores has such heads
      {6, 16, many_short, false, 0},      // a group of heads and a part of one
      {2, 64, {40, 3, 17}, false, 0, 4},  // a tensor shard's heads
      // Around the edges of tiles of 16, 32 and 64 rows; heads that share a block.
      {5, 32, {1, 15, 16, 17}, false, 0},
      {3, 64, {31, 32, 33}, false, 0},
      {2, 64, {63, 64, 65}, false, 0},
      {5, 64, {16, 9, 1, 12}, false, 0},
      {3, 128, {17, 1, 129}, false, 0},
      // A position bias.
      {1, 7, {1}, false, 0, 0, true},
      {3, 11, {7, 1, 33}, false, 0, 0, true},
      {2, 32, {100, 1, 17}, false, 0, 0, true},
      {5, 64, {16, 9, 1, 12}, false, 0, 0, true},
      {2, 64, {131, 2}, false, 0, 4, true},
      // Windows narrower than a tile, at its edges, and wider than the sequence.
      {2, 32, {200, 3, 65}, false, 0, 0, false, 16},
      {1, 64, {200, 64}, false, 0, 0, false, 64},
      {2, 24, {50, 131}, false, 0, 0, false, 5},
      {3, 32, {40, 1, 97}, false, 0, 0, false, 0},
      {2, 64, {129, 20}, false, 0, 2, false, 33},
      {1, 128, {150}, false, 0, 0, false, 1},
      {2, 32, {33, 70}, false, 0, 0, true, 500},
      {2, 32, {70, 131}, false, 0, 0, true, 9}};
  size_t special = 0;  // shapes with a bias or a window so far
  for (Case c : shapes) {
    const bool is_special = c.bias || c.window >= 0;
    special += is_special;
    for (bool first_only : {false, true}) {
      for (double p : {0.0, 0.1}) {
        // The table takes long: every second one of these has dropout with all queries, the others
        // with first ones.
        if (is_special && (special % 2 == 0) == (first_only == (p > 0))) continue;
        c.first_only = first_only;
        c.dropout = p;
        add_case(table, c);
      }
    }
  }
}

}  // namespace finetune::test

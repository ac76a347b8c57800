// Op table: scores by relative position, and attention with them.
#include <cmath>

#include "core/text/text.h"
#include "op_case.h"

namespace finetune::test {
namespace {

struct PairCase {
  int64_t heads, head_size;
  std::vector<int32_t> lengths;
  int64_t near;             // distances up to this one have a row each, of those farther two share
  int64_t far;              // the largest row: those of farther distances are clamped
  bool first_only = false;  // one query per sequence
  bool pk = true, pq = true;

  int64_t hidden() const { return heads * head_size; }
  int64_t tokens() const {
    int64_t sum = 0;
    for (int32_t n : lengths) sum += n;
    return sum;
  }
  int64_t query_rows() const { return first_only ? int64_t(lengths.size()) : tokens(); }
  int64_t longest() const { return *std::max_element(lengths.begin(), lengths.end()); }
  int64_t span() const { return longest() + 3; }
  // Of all distances in use.
  int64_t row_of(int64_t distance) const {
    const int64_t apart = std::abs(distance);
    const int64_t row = std::min(apart <= near ? apart : near + (apart - near + 1) / 2, far);
    return distance < 0 ? -row : row;
  }
  int64_t table_rows() const { return row_of(longest() - 1) - row_of(1 - longest()) + 1; }
  std::string text() const {
    std::string all;
    for (int32_t n : lengths) all += concat(" ", n);
    return concat(heads, " heads of ", head_size, ", lengths", all, ", near ", near, ", far ", far,
                  first_only ? ", first queries" : "", pk ? "" : ", no pk", pq ? "" : ", no pq");
  }
};

AttentionShape shape_of(const PairCase& c, const OpData& t) {
  AttentionShape shape;
  shape.heads = c.heads;
  shape.head_size = c.head_size;
  shape.scale = float(1.0 / std::sqrt(3.0 * double(c.head_size)));
  shape.queries = t.segments("query offsets");
  shape.keys = t.segments("key offsets");
  shape.samples = t.uints("samples");
  return shape;
}

// The table's row 0 is three rows before the operands'.
RelativeRows rows_of(const PairCase& c, const OpData& t) {
  return {t.ints("rows"), c.span(), 3};
}

OpCaseMaker start(const char* op, const PairCase& c, double factor) {
  OpCaseMaker maker(op, c.text(), factor * sum_tolerance(c.head_size + c.longest()),
                    "float sums over head_size and pairs");
  const int64_t h = c.hidden();
  maker.input("q", c.query_rows(), h, 5).input("kv", c.tokens(), 2 * h);
  maker.view("k", "kv", 0, h).view("v", "kv", h, h);
  if (c.pk) maker.input("pk", c.table_rows(), h);
  if (c.pq) maker.input("pq", c.table_rows(), h, 3);
  maker.result("scores", c.heads * c.query_rows(), c.span());
  std::vector<int32_t> keys{0}, queries{0}, samples, rows;
  for (int32_t n : c.lengths) {
    keys.push_back(keys.back() + n);
    queries.push_back(queries.back() + (c.first_only ? 1 : n));
    samples.push_back(int32_t(samples.size()));
  }
  for (int64_t d = 1 - c.span(); d < c.span(); ++d) {
    rows.push_back(int32_t(c.row_of(d) - c.row_of(1 - c.longest()) + 3));
  }
  maker.integers("query offsets", queries).integers("key offsets", keys).integers("rows", rows);
  return maker.integers("samples", samples).work(double(c.tokens() * c.longest() * 4 * h));
}

AttentionShape scored_shape(const PairCase& c, Backend& backend, OpData& t, bool gradient) {
  AttentionShape shape = shape_of(c, t);
  const Tensor scores = t["scores"];
  backend.fill_zero(scores);  // what has no pair is not compared
  backend.pair_scores(shape, rows_of(c, t), t["q"], t["k"], t["pk"], t["pq"], scores);
  shape.bias.values = scores.f32();
  shape.bias.span = c.span();
  shape.bias.query_rows = c.query_rows();
  if (gradient) shape.bias.gradient = scores.f32();  // in place
  return shape;
}

void add_case(std::vector<OpCase>& table, const PairCase& c) {
  table.push_back(start("pair_scores", c, 1)
                      .run([c](Backend& backend, OpData& t) { scored_shape(c, backend, t, false); },
                           {"scores"}));
  table.push_back(in_bf16(table.back(), {"q", "kv"}, kRounded, kRoundedReason));

  const auto forward = [c](Backend& backend, OpData& t) {
    backend.attention(scored_shape(c, backend, t, false), {}, t["q"], t["k"], t["v"], t["out"],
                      t["lse"]);
  };
  const int64_t h = c.hidden();
  OpCaseMaker backward = start("pair_scores_backward", c, 6);
  backward.result("out", c.query_rows(), h).result("lse", c.heads, c.query_rows());
  backward.input("dout", c.query_rows(), h).result("dq", c.query_rows(), h, 2);
  backward.result("dkv", c.tokens(), 2 * h).view("dk", "dkv", 0, h).view("dv", "dkv", h, h);
  std::vector<std::string> outputs{"dq", "dk", "dv", "scores"};
  std::vector<OpGradient> gradients{{"q", "dq"}, {"k", "dk"}, {"v", "dv"}};
  for (const auto& [is_there, name] : {std::pair(c.pk, "pk"), std::pair(c.pq, "pq")}) {
    if (!is_there) continue;
    backward.result(concat("d", name), c.table_rows(), h);
    outputs.push_back(concat("d", name));
    gradients.push_back({name, concat("d", name)});
  }
  const auto run = [c](Backend& backend, OpData& t) {
    const AttentionShape shape = scored_shape(c, backend, t, true);
    backend.attention_backward(shape, {}, t["q"], t["k"], t["v"], t["out"], t["lse"], t["dout"],
                               t["dq"], t["dk"], t["dv"]);
    backend.pair_scores_backward(shape, rows_of(c, t), t["scores"], t["q"], t["k"], t["pk"],
                                 t["pq"], t["dq"], t["dk"], t["dpk"], t["dpq"]);
  };
  table.push_back(backward.run(run, outputs).gradient_of(forward, {{"out", "dout"}}, gradients));
  table.push_back(in_bf16(table.back(), {"q", "kv", "out", "dout", "dq", "dkv"}, 1.2e-2,
                          "results, probabilities and their gradients are rounded to bf16"));
}

}  // namespace

void add_pair_cases(std::vector<OpCase>& table) {
  const PairCase cases[] = {{1, 7, {1}, 8, 8},
                            {3, 11, {7, 1, 33}, 40, 40},
                            {2, 32, {50, 17}, 20, 30},
                            {5, 64, {16, 9, 1, 12}, 6, 100},
                            {2, 64, {131, 2}, 24, 60},
                            {2, 24, {49}, 9, 20, false, true, false},
                            {2, 24, {49}, 9, 20, false, false, true},
                            {3, 32, {65, 3}, 30, 40, true}};
  for (const PairCase& c : cases) add_case(table, c);
}

}  // namespace finetune::test

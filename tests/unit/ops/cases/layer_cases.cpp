// Encoder layers in inference, for backends that compute them as a whole.
#include <cmath>
#include <numeric>

#include "core/numeric/dtype.h"
#include "core/text/text.h"
#include "op_case.h"

namespace finetune::test {
namespace {

// A bf16 operand in the backend's memory, copied from or to a view of floats.
class Bf16 {
 public:
  Bf16(Backend& backend, Tensor floats)
      : backend_(backend),
        floats_(floats),
        memory_(backend.allocate(size_t(floats.size()) * sizeof(bfloat16))) {}
  Tensor view() const {
    return {memory_.get(), DType::bf16, floats_.rows, floats_.cols, floats_.cols};
  }
  void take() {
    std::vector<float> values(size_t(floats_.size()));
    std::vector<bfloat16> rounded;
    backend_.download(values.data(), floats_.data, values.size() * sizeof(float));
    for (float v : values) rounded.push_back(bfloat16(v));
    backend_.upload(memory_.get(), rounded.data(), rounded.size() * sizeof(bfloat16));
  }
  void give() {
    std::vector<bfloat16> rounded(size_t(floats_.size()));
    std::vector<float> values;
    backend_.download(rounded.data(), memory_.get(), rounded.size() * sizeof(bfloat16));
    for (bfloat16 v : rounded) values.push_back(float(v));
    backend_.upload(floats_.data, values.data(), values.size() * sizeof(float));
  }

 private:
  Backend& backend_;
  Tensor floats_;
  std::shared_ptr<void> memory_;
};

struct Attention {
  int64_t heads, head_size;
  std::vector<int32_t> lengths;
  bool first_only;

  int64_t hidden() const { return heads * head_size; }
};

void add_attention(std::vector<OpCase>& table, const Attention& a) {
  const int64_t h = a.hidden(), count = int64_t(a.lengths.size());
  const int64_t tokens = std::accumulate(a.lengths.begin(), a.lengths.end(), int64_t{0});
  std::string lengths;
  std::vector<int32_t> keys{0}, queries{0};
  for (int32_t n : a.lengths) {
    lengths += concat(" ", n);
    keys.push_back(keys.back() + n);
    queries.push_back(queries.back() + (a.first_only ? 1 : n));
  }
  OpCaseMaker maker("self_attention",
                    concat(a.heads, " heads of ", a.head_size, ", lengths", lengths,
                           a.first_only ? ", first queries" : ""),
                    4e-3, "queries, keys, values and probabilities are rounded to bf16");
  maker.input("x", tokens, h).input("bias", 1, 3 * h).result("context", queries.back(), h);
  // Scores of a few units: probabilities are neither all equal nor all 0 and 1.
  maker.input("weight", 3 * h, h, 0, 4 / std::sqrt(double(h)));
  if (a.first_only) maker.input("first", count, h);
  maker.integers("query offsets", queries).integers("key offsets", keys);
  maker.work(double(3 * tokens * h * h));
  maker.get().offered = [a](const Backend& backend) {
    return backend.has_layer({a.hidden(), a.head_size, 4 * a.hidden(), Activation::gelu});
  };
  table.push_back(maker.run(
      [a](Backend& backend, OpData& t) {
        AttentionShape shape;
        shape.heads = a.heads;
        shape.head_size = a.head_size;
        shape.scale = float(1.0 / std::sqrt(double(a.head_size)));
        shape.queries = t.segments("query offsets");
        shape.keys = t.segments("key offsets");
        Bf16 context(backend, t["context"]);
        backend.self_attention(shape, t["x"], t["first"], t["weight"], t["bias"], context.view());
        context.give();
      },
      {"context"}));
}

struct Output {
  int64_t rows, hidden, inner;
  Activation activation;
  bool in_place;
  bool tail = false;  // of the activation: inputs around -4, where gelu is twice gelu_tanh
};

void add_output(std::vector<OpCase>& table, const Output& o) {
  const int64_t h = o.hidden, inner = o.inner;
  OpCaseMaker maker("layer_output",
                    concat("(", o.rows, ",", h, ") inner ", inner, " f ", int(o.activation),
                           o.in_place ? " in place" : "", o.tail ? " tail" : ""),
                    2e-3, "two results between the products are rounded to bf16");
  maker.input("context", o.rows, h).input("residual", o.rows, h);
  maker.input("attention weight", h, h, 0, 2 / std::sqrt(double(h)));
  maker.input("inner weight", inner, h, 0, 2 / std::sqrt(double(h)));
  maker.input("output weight", h, inner, 0, 2 / std::sqrt(double(inner)));
  for (const char* name : {"attention bias", "attention gamma", "attention beta", "output bias",
                           "output gamma", "output beta"}) {
    maker.input(name, 1, h);
  }
  maker.input("inner bias", 1, inner);
  if (o.tail) {
    auto& buffers = maker.get().buffers;
    for (float& w : buffers["inner weight"].values.own()) w /= 4;
    for (float& b : buffers["inner bias"].values.own()) b = b / 4 - 4;
    for (float& w : buffers["output weight"].values.own()) w *= 8192;
  }
  if (o.in_place) {
    maker.view("y", "residual", 0, h);
  } else {
    maker.result("y", o.rows, h);
  }
  maker.work(double(o.rows * h * (h + 2 * inner)));
  maker.get().offered = [o](const Backend& backend) {
    return backend.has_layer({o.hidden, 32, o.inner, o.activation});
  };
  maker.get().activation = o.activation;
  table.push_back(maker.run(
      [](Backend& backend, OpData& t) {
        LayerOutput layer;
        layer.attention_weight = t["attention weight"];
        layer.attention_bias = t["attention bias"];
        layer.attention_gamma = t["attention gamma"];
        layer.attention_beta = t["attention beta"];
        layer.inner_weight = t["inner weight"];
        layer.inner_bias = t["inner bias"];
        layer.output_weight = t["output weight"];
        layer.output_bias = t["output bias"];
        layer.output_gamma = t["output gamma"];
        layer.output_beta = t["output beta"];
        layer.epsilon = 1e-12f;
        layer.activation = t.activation();
        Bf16 context(backend, t["context"]);
        context.take();
        backend.layer_output(layer, context.view(), t["residual"], t["y"]);
      },
      {"y"}));
}

}  // namespace

void add_layer_cases(std::vector<OpCase>& table) {
  for (bool first_only : {false, true}) {
    add_attention(table, {1, 32, {1}, first_only});
    add_attention(table, {2, 32, {13, 1, 7, 30, 2}, first_only});
    add_attention(table, {3, 64, {16, 17, 32, 33, 15}, first_only});
    add_attention(table, {1, 96, {5, 40, 64}, first_only});
    add_attention(table, {2, 64, {171, 384, 9}, first_only});
    add_attention(table, {13, 32, {49, 512, 1}, first_only});  // more tiles of depth than at once
  }
  add_attention(table, {2, 32, std::vector<int32_t>(90, 11), false});  // several groups
  for (Activation f :
       {Activation::gelu, Activation::gelu_tanh, Activation::relu, Activation::silu}) {
    add_output(table, {33, 64, 160, f, false});
    add_output(table, {17, 32, 96, f, false, true});
  }
  add_output(table, {1, 32, 32, Activation::gelu, false});
  add_output(table, {31, 96, 384, Activation::gelu, true});
  add_output(table, {70, 416, 448, Activation::gelu, false});
  add_output(table, {700, 64, 96, Activation::gelu, true});
  add_output(table, {37, 384, 1536, Activation::gelu, true});
}

}  // namespace finetune::test

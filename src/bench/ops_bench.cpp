// bench ops: times each operation of a step alone, at the step's sizes.
#include "bench/ops_bench.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "bench/synthetic_task.h"
#include "core/threads/parallel.h"
#include "data/packing.h"
#include "engine/engine.h"
#include "ops/attention_masks.h"
#include "tasks/objective.h"

namespace finetune {
namespace {

constexpr double kSecondsPerOp = 0.05;
constexpr int kLeastCalls = 5;
constexpr double kDropout = 0.1;
constexpr PhiloxKey kOperandKey = {0x6F707362, 0x656E6368};

class OpsBench {
 public:
  OpsBench(std::unique_ptr<Backend> backend, Clock clock, const EncoderConfig& config,
           const PackedBatch& batch, const Task& task)
      : backend_(std::move(backend), clock),
        config_(config),
        batch_(backend_, batch.tokens(), batch.sequences()),
        host_(batch),
        task_(task),
        objective_(make_objective(task.training_arrays())) {
    batch_.upload(batch);
    objective_->reserve(backend_, batch.sequences());
  }

  std::vector<OpLine> run() {
    forward();
    loss();
    backward();
    update();
    return lines_;
  }

 private:
  template <typename T>
  void* fill(int64_t count) {
    std::vector<T> values;
    for (int64_t i = 0; i < count; ++i) {
      values.push_back(
          T(float(2 * unit_interval(philox(kOperandKey, {uint32_t(i), 0, 0, 0})[0]) - 1)));
    }
    memory_.push_back(backend_.allocate(values.size() * sizeof(T)));
    backend_.upload(memory_.back().get(), values.data(), values.size() * sizeof(T));
    return memory_.back().get();
  }
  Tensor make(int64_t rows, int64_t cols) {
    return matrix(static_cast<float*>(fill<float>(rows * cols)), rows, cols);
  }
  // The embeddings of token types; empty for models without types.
  Tensor types() {
    return config_.type_vocab_size > 0 ? make(config_.type_vocab_size, config_.hidden_size)
                                       : Tensor{};
  }
  // A matrix of the backend's activation type.
  Tensor typed(int64_t rows, int64_t cols) {
    if (backend_.activation_type() == DType::f32) return make(rows, cols);
    return {fill<bfloat16>(rows * cols), DType::bf16, rows, cols, cols};
  }
  // A product's result, typed as in the model: f32 if it is added to the residual path.
  Tensor product(int64_t rows, int64_t cols, bool residual) {
    return residual ? make(rows, cols) : typed(rows, cols);
  }
  Dropout dropout() const { return Dropout::make(kDropout, kOperandKey, 0); }
  AttentionShape attention_shape() const {
    AttentionShape shape{config_.num_attention_heads,
                         config_.head_size(),
                         float(1 / std::sqrt(double(config_.head_size()))),
                         batch_.segments(),
                         batch_.segments(),
                         batch_.samples()};
    return shape;
  }
  Tensor attention_mask() {
    if (!backend_.keeps_attention_masks()) return {};
    return make(1, attention_mask_floats(config_.num_attention_heads, batch_.tokens(),
                                         batch_.segments().max_length));
  }

  void measure(const std::function<void()>& call);
  void forward();
  void loss();
  void backward();
  void update();

  ProfilingBackend backend_;
  const EncoderConfig& config_;
  DeviceBatch batch_;
  const PackedBatch& host_;
  const Task& task_;
  std::unique_ptr<Objective> objective_;
  std::vector<std::shared_ptr<void>> memory_;
  std::vector<OpLine> lines_;
};

void OpsBench::measure(const std::function<void()>& call) {
  call();
  std::vector<double> seconds;
  OpKey key;
  OpRecord record;
  for (double sum = 0; sum < kSecondsPerOp || int(seconds.size()) < kLeastCalls;) {
    backend_.clear();
    call();
    for (const auto& [each, its] : backend_.profile()) {
      if (each.op == "upload" || each.op == "download") continue;
      key = each;
      record = its;
    }
    seconds.push_back(record.seconds);
    sum += record.seconds;
  }
  std::nth_element(seconds.begin(), seconds.begin() + long(seconds.size() / 2), seconds.end());
  const double median = std::max(1e-9, seconds[seconds.size() / 2]);
  lines_.push_back(
      {key, double(seconds.size()), median, {}, record.flops / median, record.bytes / median});
}

void OpsBench::forward() {
  const int64_t t = batch_.tokens(), h = config_.hidden_size, inner = config_.intermediate_size;
  {
    Tensor word = make(config_.vocab_size, h), position = make(host_.max_length, h), type = types(),
           y = make(t, h);
    measure([&] {
      backend_.embed(batch_.ids(), batch_.positions(), batch_.types(), word, position, type, y);
    });
    measure([&] { backend_.dropout(y, dropout(), batch_.token_names(), y); });
  }
  memory_.clear();
  for (auto [in, out] : {std::pair(h, 3 * h), {h, h}, {h, inner}, {inner, h}}) {
    Tensor x = typed(t, in), w = make(out, in), bias = make(1, out), y = product(t, out, out == h);
    measure([&] { backend_.linear(x, w, bias, y); });
  }
  memory_.clear();
  Tensor qkv = typed(t, 3 * h), context = typed(t, h);
  Tensor lse = make(config_.num_attention_heads, t), mask = attention_mask();
  measure([&] {
    backend_.attention(attention_shape(), dropout(), qkv.columns(0, h), qkv.columns(h, h),
                       qkv.columns(2 * h, h), context, lse, mask);
  });
  Tensor x = typed(t, inner), y = typed(t, inner);
  measure([&] { backend_.activation(config_.hidden_act, x, y); });
  Tensor residual = make(t, h), gamma = make(1, h), beta = make(1, h), stats = make(t, 2);
  Tensor s = make(t, h), normed = make(t, h), sum = make(t, h);
  Tensor rounded = backend_.activation_type() == DType::bf16 ? typed(t, h) : Tensor{};
  measure([&] {
    backend_.add_layer_norm(sum, residual, dropout(), batch_.token_names(), gamma, beta,
                            float(config_.layer_norm_eps), s, stats, normed, rounded);
  });
  memory_.clear();
}

void OpsBench::loss() {
  const Head head = task_.head();
  Tensor logits = make(logit_rows(head, batch_), head.outputs);
  Tensor losses = make(1, objective_->losses(batch_)), dlogits = make(logits.rows, logits.cols);
  measure([&] {
    objective_->upload_targets(backend_, host_);
    objective_->loss(backend_, batch_, logits, losses, dlogits);
  });
  lines_.back().key.phase = Phase::forward;
  memory_.clear();
}

void OpsBench::backward() {
  const int64_t t = batch_.tokens(), h = config_.hidden_size, inner = config_.intermediate_size;
  for (auto [in, out] : {std::pair(h, 3 * h), {h, h}, {h, inner}, {inner, h}}) {
    const bool residual = in == h && out != h;
    Tensor x = typed(t, in), w = make(out, in), dy = typed(t, out), dx = product(t, in, residual);
    Tensor dw = make(out, in), dbias = make(1, out);
    measure([&] { backend_.linear_backward_weight(dy, x, dw, dbias, false); });
    measure([&] { backend_.linear_backward_input(dy, w, dx, false); });
    memory_.clear();
  }
  {
    Tensor qkv = typed(t, 3 * h), context = typed(t, h), dcontext = typed(t, h);
    Tensor lse = make(config_.num_attention_heads, t), dqkv = typed(t, 3 * h);
    Tensor mask = attention_mask();
    auto part = [h](Tensor x, int64_t i) { return x.columns(i * h, h); };
    backend_.attention(attention_shape(), dropout(), part(qkv, 0), part(qkv, 1), part(qkv, 2),
                       context, lse, mask);
    measure([&] {
      backend_.attention_backward(attention_shape(), dropout(), part(qkv, 0), part(qkv, 1),
                                  part(qkv, 2), context, lse, dcontext, part(dqkv, 0),
                                  part(dqkv, 1), part(dqkv, 2), mask);
    });
  }
  Tensor x = typed(t, inner), dy = typed(t, inner), again = typed(t, inner);
  Tensor bias = backend_.sums_columns() ? make(1, inner) : Tensor{};
  measure([&] { backend_.activation_backward(config_.hidden_act, x, dy, dy, again, bias, false); });
  Tensor gradient = make(t, h), s = make(t, h), stats = make(t, 2), gamma = make(1, h);
  Tensor ds = make(t, h), dx = typed(t, h), dgamma = make(1, h), dbeta = make(1, h);
  if (bias) bias = make(1, h);
  measure([&] {
    backend_.add_layer_norm_backward(gradient, s, stats, gamma, dropout(), batch_.token_names(), ds,
                                     dx, dgamma, dbeta, true, bias);
  });
  Tensor word = make(config_.vocab_size, h), position = make(host_.max_length, h), type = types();
  measure([&] {
    backend_.embed_backward(gradient, batch_.ids(), batch_.positions(), batch_.types(),
                            batch_.order(), word, position, type);
  });
  memory_.clear();
}

// Times the update of all parameters at once. v holds squares, so its roots are as in training.
void OpsBench::update() {
  const int64_t size = ParameterTable(config_, task_.head()).size();
  Tensor parameter = make(1, size), gradient = make(1, size), m = make(1, size);
  memory_.push_back(backend_.allocate(size_t(size) * sizeof(float)));
  Tensor v = vector(static_cast<float*>(memory_.back().get()), size);
  const int64_t blocks = (size + kNormBlock - 1) / kNormBlock;
  const auto sums = backend_.allocate(size_t(blocks) * sizeof(double));
  measure([&] {
    backend_.block_square_sums(gradient, kNormBlock, {}, static_cast<double*>(sums.get()));
  });
  AdamW options;
  options.learning_rate = 1e-5f;
  options.weight_decay = 0.01f;
  measure([&] { backend_.adamw(options, parameter, gradient, m, v); });
  memory_.clear();
}

}  // namespace

OpsBenchResult bench_ops(const StepBenchOptions& options) {
  check(options);
  const EncoderConfig config = shape_config(options.shape);
  const LengthDistribution lengths = length_distribution(options.lengths, config.max_length());
  const TaskKind kind = task_kind(options);
  OpsBenchResult result;
  result.shape = options.shape;
  result.lengths = options.lengths;
  result.batch_size = resolved_batch_size(options);
  std::unique_ptr<Task> task =
      make_synthetic_task(kind, lengths, result.batch_size, config.vocab_size);
  std::vector<uint32_t> order(static_cast<size_t>(result.batch_size));
  std::iota(order.begin(), order.end(), 0u);
  PackedBatch batch;
  pack(task->train_set().samples, order, {}, batch);
  result.tokens = batch.tokens();

  std::unique_ptr<Backend> backend =
      make_backend(options.device, options.threads, options.precision);
  result.backend = backend->description();
  result.device = options.device;
  const DType precision = backend->compute_type();
  keep_best(result.peaks, options, precision);
  result.lines = OpsBench(std::move(backend), options.clock, config, batch, *task).run();
  keep_best(result.peaks, options, precision);
  return result;
}

JsonObject to_json(const OpsBenchResult& result) {
  JsonObject out;
  out.add("shape", result.shape);
  out.add("lengths", result.lengths);
  out.add("backend", result.backend);
  out.add("device", result.device);
  out.add("batch_size", result.batch_size);
  out.add("tokens", result.tokens);
  out.add("matmul_peak_flops_per_second", result.peaks.matmul);
  out.add("memory_peak_bytes_per_second", result.peaks.memory);
  JsonArray ops;
  for (const OpLine& line : result.lines) ops.add(to_json(line));
  out.add("ops", ops);
  return out;
}

std::string to_text(const OpsBenchResult& result) {
  return concat(result.shape, ", ", result.lengths, " lengths, batch ", result.batch_size, " (",
                result.tokens, " tokens)\n", result.backend, "; matrix products ",
                rate_text(result.peaks), ", memory ", format_fixed(result.peaks.memory / 1e9, 1),
                " GB/s\n\n", table_of(result.lines, result.peaks, "ms a call"));
}

}  // namespace finetune

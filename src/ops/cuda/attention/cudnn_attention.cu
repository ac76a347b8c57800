// Builds cuDNN graphs of attention forward and backward, and runs their plans.
#include <limits>

#include "ops/cuda/attention/cudnn_attention.h"

namespace finetune::cuda {
namespace {

// The parts that both graphs share.
class Builder {
 public:
  Builder(const FusedShape& shape, CudnnGraph& graph, std::vector<int64_t>& numbers)
      : s(shape), graph_(graph), numbers_(numbers) {
    query_lengths = integers(FusedTensor::query_lengths, s.sequences);
    key_lengths = integers(FusedTensor::key_lengths, s.sequences);
  }

  // ---- inputs of a call
  CudnnTensor integers(FusedTensor t, int64_t count) {
    return given(t, {count, 1, 1, 1}, {1, 1, 1, 1}, {CUDNN_DATA_INT32, nullptr, false});
  }
  CudnnTensor offsets(FusedTensor t) { return integers(t, s.sequences + 1); }
  // (B, heads, length, head_size), each sequence where its offset says
  CudnnTensor rows(FusedTensor t, int64_t stride, CudnnTensor offset) {
    return given(t, {s.sequences, s.heads, s.length, s.head_size},
                 {s.length * stride, s.head_size, stride, 1}, {CUDNN_DATA_BFLOAT16, offset, false});
  }
  // The same memory as (B, heads, head_size, length)
  CudnnTensor columns(FusedTensor t, int64_t stride, CudnnTensor offset) {
    return given(t, {s.sequences, s.heads, s.head_size, s.length},
                 {s.length * stride, s.head_size, 1, stride}, {CUDNN_DATA_BFLOAT16, offset, false});
  }
  CudnnTensor stats() {
    return given(FusedTensor::stats, {s.sequences, s.heads, s.length, 1},
                 {s.length * s.heads, 1, s.heads, 1},
                 {CUDNN_DATA_FLOAT, offsets(FusedTensor::stats_offsets), false});
  }
  CudnnTensor scalar(CudnnScalar number) {
    numbers_.push_back(int64_t(number));
    return graph_.tensor(int64_t(number), {1, 1, 1, 1}, {1, 1, 1, 1},
                         {CUDNN_DATA_FLOAT, nullptr, true});
  }
  CudnnTensor given(FusedTensor t, const std::vector<int64_t>& dims,
                    const std::vector<int64_t>& strides, const CudnnGraph::TensorOptions& options) {
    numbers_.push_back(number_of(t));
    return graph_.tensor(number_of(t), dims, strides, options);
  }

  // ---- intermediate tensors
  CudnnTensor scores(cudnnDataType_t type = CUDNN_DATA_FLOAT) {  // (B, heads, queries, keys)
    return graph_.tensor(0, {s.sequences, s.heads, s.length, s.length}, score_strides(),
                         {type, nullptr, false});
  }
  CudnnTensor turned_scores() {  // (B, heads, keys, queries), rounded
    const std::vector<int64_t> f = score_strides();
    return graph_.tensor(0, {s.sequences, s.heads, s.length, s.length}, {f[0], f[1], f[3], f[2]},
                         {CUDNN_DATA_BFLOAT16, nullptr, false});
  }
  CudnnTensor per_query() {  // (B, heads, queries, 1)
    return graph_.tensor(0, {s.sequences, s.heads, s.length, 1}, per_query_strides(), {});
  }
  std::vector<int64_t> per_query_strides() const { return {s.heads * s.length, s.length, 1, 1}; }

  // ---- parts
  // x if both the query and the key are in the sequence, else `hidden`
  CudnnTensor inside(CudnnTensor x) {
    CudnnTensor place[2] = {scores(CUDNN_DATA_INT32), scores(CUDNN_DATA_INT32)};
    graph_.index(2, x, place[0]);
    graph_.index(3, x, place[1]);
    CudnnTensor is[3] = {scores(CUDNN_DATA_BOOLEAN), scores(CUDNN_DATA_BOOLEAN),
                         scores(CUDNN_DATA_BOOLEAN)};
    graph_.pointwise(CUDNN_POINTWISE_CMP_LT, place[0], query_lengths, is[0], CUDNN_DATA_BOOLEAN);
    graph_.pointwise(CUDNN_POINTWISE_CMP_LT, place[1], key_lengths, is[1], CUDNN_DATA_BOOLEAN);
    graph_.pointwise(CUDNN_POINTWISE_LOGICAL_AND, is[0], is[1], is[2], CUDNN_DATA_BOOLEAN);
    CudnnTensor y = scores();
    graph_.pointwise(CUDNN_POINTWISE_BINARY_SELECT, x, scalar(CudnnScalar::hidden), y,
                     CUDNN_DATA_FLOAT, is[2]);
    return y;
  }
  CudnnTensor multiplied(CudnnTensor x, CudnnTensor by, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    CudnnTensor y = scores(type);
    graph_.pointwise(CUDNN_POINTWISE_MUL, x, by, y);
    return y;
  }
  CudnnTensor mask() {
    const CudnnGraph::TensorOptions number = {CUDNN_DATA_INT64, nullptr, false};
    CudnnTensor seed = given(FusedTensor::seed, {1, 1, 1, 1}, {1, 1, 1, 1}, number);
    CudnnTensor offset = given(FusedTensor::offset, {1, 1, 1, 1}, {1, 1, 1, 1}, number);
    CudnnTensor y = scores();
    graph_.bernoulli(1.0 - s.dropped(), seed, offset, y);
    return y;
  }

  const FusedShape& s;
  CudnnTensor query_lengths, key_lengths;

 private:
  std::vector<int64_t> score_strides() const {
    return {s.heads * s.length * s.length, s.length * s.length, s.length, 1};
  }

  CudnnGraph& graph_;
  std::vector<int64_t>& numbers_;
};

// out = dropout(softmax(scale * Q K^T)) V
void forward(const FusedShape& s, CudnnGraph& graph, Builder& b) {
  using enum FusedTensor;
  CudnnTensor q_rows = b.rows(q, s.q_stride, b.offsets(q_offsets));
  CudnnTensor k_columns = b.columns(k, s.k_stride, b.offsets(k_offsets));
  CudnnTensor v_rows = b.rows(v, s.v_stride, b.offsets(v_offsets));
  CudnnTensor out_rows = b.rows(out, s.out_stride, b.offsets(out_offsets));

  CudnnTensor product = b.scores();
  graph.matmul(q_rows, k_columns, product, {b.query_lengths, b.key_lengths, nullptr});
  CudnnTensor score = b.inside(b.multiplied(product, b.scalar(CudnnScalar::scale)));

  CudnnTensor largest = b.per_query(), below = b.scores(), exponential = b.scores();
  graph.reduce(CUDNN_REDUCE_TENSOR_MAX, score, largest);
  graph.pointwise(CUDNN_POINTWISE_SUB, score, largest, below);
  graph.pointwise(CUDNN_POINTWISE_EXP, below, nullptr, exponential);
  CudnnTensor sum = b.per_query();
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, exponential, sum);
  CudnnTensor logarithm = b.per_query();  // engines accept the graph only with stats
  graph.pointwise(CUDNN_POINTWISE_LOG, sum, nullptr, logarithm);
  graph.pointwise(CUDNN_POINTWISE_ADD, largest, logarithm, b.stats());
  const bool dropout = s.threshold != 0;
  CudnnTensor p = b.scores(dropout ? CUDNN_DATA_FLOAT : CUDNN_DATA_BFLOAT16);
  graph.pointwise(CUDNN_POINTWISE_DIV, exponential, sum, p);
  if (dropout) {
    p = b.multiplied(p, b.mask());
    p = b.multiplied(p, b.scalar(CudnnScalar::factor), CUDNN_DATA_BFLOAT16);
  }
  graph.matmul(p, v_rows, out_rows, {b.query_lengths, nullptr, b.key_lengths});
}

// With P = exp(score - stats), M = P * mask * factor and D = kept * row sums of dout * out: dS =
// scale * factor * P * (mask * (dout V^T) - D); dq = dS K; dk = dS^T Q; dv = M^T dout. dQ is a
// separate product instead of a sum over many blocks, which makes it deterministic.
void backward(const FusedShape& s, CudnnGraph& graph, Builder& b) {
  using enum FusedTensor;
  CudnnTensor q_offset = b.offsets(q_offsets), k_offset = b.offsets(k_offsets);
  CudnnTensor v_offset = b.offsets(v_offsets), out_offset = b.offsets(out_offsets);
  CudnnTensor q_rows = b.rows(q, s.q_stride, q_offset);
  CudnnTensor k_columns = b.columns(k, s.k_stride, k_offset);
  CudnnTensor v_columns = b.columns(v, s.v_stride, v_offset);
  CudnnTensor out_rows = b.rows(out, s.out_stride, out_offset);
  CudnnTensor dout_rows = b.rows(dout, s.out_stride, out_offset);
  CudnnTensor dq_rows = b.rows(dq, s.q_stride, q_offset);
  CudnnTensor dk_rows = b.rows(dk, s.k_stride, k_offset);
  CudnnTensor dv_rows = b.rows(dv, s.v_stride, v_offset);
  CudnnTensor scale = b.scalar(CudnnScalar::scale);
  const bool dropout = s.threshold != 0;
  CudnnTensor mask = dropout ? b.mask() : nullptr;
  CudnnTensor factor = dropout ? b.scalar(CudnnScalar::factor) : nullptr;

  const std::vector<int64_t> dims = {s.sequences, s.heads, s.length, s.head_size};
  const int64_t width = s.heads * s.head_size;
  CudnnTensor weighted = graph.tensor(0, dims, {s.length * width, s.length * s.head_size, width, 1},
                                      {CUDNN_DATA_FLOAT});
  graph.pointwise(CUDNN_POINTWISE_MUL, dout_rows, out_rows, weighted);
  CudnnTensor sums = b.per_query();
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, weighted, sums);
  CudnnTensor delta =
      b.given(deltas, {s.sequences, s.heads, s.length, 1}, b.per_query_strides(), {});
  graph.pointwise(CUDNN_POINTWISE_MUL, sums, b.scalar(CudnnScalar::kept), delta);

  CudnnTensor product = b.scores(), below = b.scores(), p = b.scores();
  graph.matmul(q_rows, k_columns, product, {b.query_lengths, b.key_lengths, nullptr});
  graph.pointwise(CUDNN_POINTWISE_SUB, b.multiplied(product, scale), b.stats(), below);
  graph.pointwise(CUDNN_POINTWISE_EXP, b.inside(below), nullptr, p);

  CudnnTensor m = dropout ? b.multiplied(b.multiplied(p, mask), factor) : p;
  CudnnTensor turned_m = b.turned_scores();
  graph.reshape(m, turned_m);
  graph.matmul(turned_m, dout_rows, dv_rows, {b.key_lengths, nullptr, b.query_lengths});

  CudnnTensor dp = b.scores(), centred = b.scores();
  graph.matmul(dout_rows, v_columns, dp, {b.query_lengths, b.key_lengths, nullptr});
  if (dropout) dp = b.multiplied(dp, mask);
  graph.pointwise(CUDNN_POINTWISE_SUB, dp, delta, centred);
  CudnnTensor ds = b.multiplied(centred, p);
  if (dropout) ds = b.multiplied(ds, factor);
  ds = b.multiplied(ds, scale);

  CudnnTensor turned_ds = b.turned_scores();
  graph.reshape(ds, turned_ds);
  graph.matmul(turned_ds, q_rows, dk_rows, {b.key_lengths, nullptr, b.query_lengths});
  CudnnTensor k_rows = graph.tensor(0, dims, {s.length * s.k_stride, s.head_size, s.k_stride, 1},
                                    {CUDNN_DATA_FLOAT, k_offset, false});
  graph.reshape(k_columns, k_rows);
  graph.matmul(ds, k_rows, dq_rows, {b.query_lengths, nullptr, b.key_lengths});
}

class Plan final : public FusedPlan {
 public:
  Plan(cudnnHandle_t handle, const FusedShape& shape)
      : handle_(handle),
        plan_(attention_graph(shape, numbers_).plan(handle, nullptr)),
        scalars_{shape.scale, -std::numeric_limits<float>::infinity(), float(1.0 - shape.dropped()),
                 float(1.0 / (1.0 - shape.dropped()))} {
    int64_t bytes = 0;
    plan_.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &bytes);
    workspace_ = size_t(bytes);
  }
  size_t workspace() const override { return workspace_; }

  void run(const FusedMemory& memory, void* workspace, cudaStream_t stream) override {
    const Cudnn& cudnn = Cudnn::library();
    std::vector<void*> pointers;
    for (const int64_t number : numbers_) {
      const int64_t scalar = number - int64_t(CudnnScalar::scale);
      pointers.push_back(scalar < 0 ? memory[FusedTensor(number - 1)] : &scalars_[scalar]);
    }
    CudnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "memory of a call");
    pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, numbers_)
        .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, int64_t(pointers.size()),
             pointers.data())
        .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace)
        .finalize();
    cudnn.check(cudnn.set_stream(handle_, stream), "stream");
    cudnn.check(cudnn.execute(handle_, plan_.raw(), pack.raw()), "attention");
  }

 private:
  cudnnHandle_t handle_;
  std::vector<int64_t> numbers_;
  CudnnDescriptor plan_;
  float scalars_[4];  // by CudnnScalar
  size_t workspace_ = 0;
};

class Library final : public FusedLibrary {
 public:
  Library() { Cudnn::library().check(Cudnn::library().create(&handle_), "handle"); }
  ~Library() override { Cudnn::library().destroy(handle_); }
  std::string name() const override { return "cuDNN " + cudnn_version(); }
  std::unique_ptr<FusedPlan> plan(const FusedShape& shape) override {
    return std::make_unique<Plan>(handle_, shape);
  }

 private:
  cudnnHandle_t handle_ = nullptr;
};

}  // namespace

CudnnGraph attention_graph(const FusedShape& shape, std::vector<int64_t>& numbers) {
  CudnnGraph graph;
  Builder builder(shape, graph, numbers);
  shape.backward ? backward(shape, graph, builder) : forward(shape, graph, builder);
  return graph;
}

std::unique_ptr<FusedLibrary> open_fused_library() {
  return std::make_unique<Library>();
}

}  // namespace finetune::cuda

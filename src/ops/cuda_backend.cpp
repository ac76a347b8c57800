#include "ops/cuda_backend.h"

#include <algorithm>
#include <iterator>

#include "core/log.h"
#include "ops/cpu/optimizer.h"
#include "ops/cuda_module.h"

namespace finetune {
namespace {

cuda::Matrix of(Tensor x) {
  if (!x) return {};
  return {x.f32(), x.rows, x.cols, x.stride};
}
cuda::Bf16Matrix bf16_of(Tensor x) {
  if (!x) return {};
  return {x.as<bfloat16>(), x.rows, x.cols, x.stride};
}
cuda::RowNames of(RowNames names) {
  return {names.position, names.sample};
}
cuda::LossScale of(LossScale s) {
  return {s.all, s.each};
}

cuda::Segments of(Segments s) {
  return {s.count, s.max_length, s.offsets};
}
cuda::RowList of(RowList rows) {
  return {rows.rows, rows.count};
}
cuda::AttentionShape of(const AttentionShape& s) {
  return {s.heads, s.head_size, s.scale, of(s.queries), of(s.keys), s.samples};
}

// The same factors as the CPU's, so that updates have the same bits.
cuda::AdamWStep of(const AdamW& options) {
  const cpu::AdamWFactors f(options);
  return {f.scale, f.beta1, f.rest1, f.beta2,   f.rest2,
          f.decay, f.rate,  f.root,  f.epsilon, options.outcome};
}

int of(Activation f) {
  switch (f) {
    case Activation::gelu:
      return cuda::kGelu;
    case Activation::gelu_tanh:
      return cuda::kGeluTanh;
    case Activation::relu:
      return cuda::kRelu;
    case Activation::silu:
      return cuda::kSilu;
    case Activation::tanh:
      return cuda::kTanh;
  }
  return -1;
}

void check_shape(Tensor x, int64_t rows, int64_t cols) {
  FINETUNE_CHECK(x.rows == rows && x.cols == cols);
}
void check_same(Tensor a, Tensor b) {
  check_shape(a, b.rows, b.cols);
}
void check_same_type(Tensor a, std::initializer_list<Tensor> others) {
  for (Tensor t : others) FINETUNE_CHECK(t.dtype == a.dtype);
}
void check_vector(Tensor x, int64_t count) {
  check_shape(x, 1, count);
}

void check_losses(Tensor logits, Tensor losses, Tensor dlogits, int64_t samples) {
  check_shape(losses, 1, samples);
  if (dlogits) check_same(dlogits, logits);
}

void check_arenas(Tensor parameter, std::initializer_list<Tensor> others) {
  FINETUNE_CHECK(parameter.rows == 1 || parameter.contiguous());
  for (Tensor t : others) {
    FINETUNE_CHECK(t.rows == 1 || t.contiguous());
    check_same(t, parameter);
  }
}

[[noreturn]] void fail(const char* operation, int status, const char* text) {
  if (status == cuda::kOutOfMemory) {
    throw OutOfDeviceMemory(
        concat("the GPU has no memory left for ", operation, " (", text, "): use smaller batches"));
  }
  throw device_error("the GPU failed at ", operation, ": ", text,
                     " (the fault may lie in an earlier operation; CUDA_LAUNCH_BLOCKING=1 in the "
                     "environment finds it)");
}

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(DType compute, std::string* problem, int local_rank) {
  auto none = [&](const std::string& why) {
    if (problem) *problem = why;
    return nullptr;
  };
  const CudaModule& module = cuda_module();
  if (!module.functions) return none(module.problem);
  char text[512];
  const int devices = module.functions->count_devices(text, sizeof text);
  if (devices == 0) return none(text);
  return std::make_unique<CudaBackend>(*module.functions->functions, compute, local_rank % devices);
}

cuda::AnyMatrix CudaBackend::any(Tensor x) const {
  const bool bf16 = x.dtype == DType::bf16;
  FINETUNE_CHECK(bf16 ? compute_ == DType::bf16 : x.dtype == DType::f32);
  return {x.data, x.rows, x.cols, x.stride, bf16};
}

template <typename Function, typename... Arguments>
void CudaBackend::call(const char* operation, Function function,
                       const Arguments&... arguments) const {
  const int status = function(context_.get(), arguments...);
  if (status != cuda::kDone) fail(operation, status, functions_.error(context_.get()));
}

CudaBackend::CudaBackend(const cuda::Functions& functions, DType compute, int device)
    : functions_(functions), compute_(compute) {
  FINETUNE_CHECK(compute == DType::f32 || compute == DType::bf16);
  cuda::Context* context = nullptr;
  char text[512];
  const int status = functions.create(
      device, compute == DType::bf16, [](const char* line) { log_line(line); }, &context, text,
      sizeof text);
  if (status != cuda::kDone) throw device_error("GPU ", device, " cannot be used: ", text);
  context_ = std::shared_ptr<cuda::Context>(context, functions.destroy);
}

bool CudaBackend::library_attention() const {
  return functions_.attention_library(context_.get())[0] != '\0';
}

std::string CudaBackend::description() const {
  return concat("CUDA, ", functions_.device_name(context_.get()),
                compute_ == DType::bf16 ? ", bf16" : ", fp32",
                library_attention() ? ", attention by " : "",
                functions_.attention_library(context_.get()));
}

std::shared_ptr<void> CudaBackend::allocate(size_t bytes) {
  void* memory = nullptr;
  const int status = functions_.allocate(context_.get(), bytes, &memory);
  if (status == cuda::kOutOfMemory) {
    const DeviceMemory memory = device_memory();
    throw OutOfDeviceMemory(concat("the GPU has no ", (bytes >> 20) + 1,
                                   " MiB of memory left, only ", memory.free >> 20, " of ",
                                   memory.total >> 20, ": use smaller batches or a smaller model"));
  }
  if (status != cuda::kDone) fail("allocating memory", status, functions_.error(context_.get()));
  return {memory, [context = context_, release = functions_.release](void* p) {
            release(context.get(), p);  // at the end of a program that failed it may fail as well
          }};
}

void CudaBackend::upload(void* to, const void* host, size_t bytes) {
  call("upload", functions_.upload, to, host, bytes);
}

void CudaBackend::download(void* host, const void* from, size_t bytes) {
  call("download", functions_.download, host, from, bytes);
}

void CudaBackend::post(const void* from, size_t bytes) {
  call("download", functions_.post, from, bytes);
}

void CudaBackend::collect(void* host, size_t bytes) {
  call("download", functions_.collect, host, bytes);
}

void CudaBackend::replay(std::span<const int64_t> key, const std::function<void()>& work) {
  cuda::Replay replay = cuda::kCall;
  call("replaying work", functions_.begin_replay, key.data(), int64_t(key.size()), &replay);
  if (replay == cuda::kReplayed) return;
  if (replay == cuda::kCall) return work();
  bool done = false;
  try {
    work();  // launches nothing, but is recorded
    call("replaying work", functions_.end_replay, &done);
  } catch (const std::exception& error) {
    call("replaying work", functions_.give_up_replay, error.what());
  }
  if (!done) work();
}

void CudaBackend::fill_zero(Tensor x) {
  const size_t size = size_of(x.dtype);
  if (x.contiguous()) x = {x.data, x.dtype, 1, x.size(), x.size()};
  call("fill_zero", functions_.fill_zero, x.data, x.rows, size_t(x.cols) * size,
       size_t(x.stride) * size);
}

void CudaBackend::synchronize() {
  call("waiting for the GPU", functions_.synchronize);
}

DeviceMemory CudaBackend::device_memory() const {
  cuda::MemoryUse use;
  call("asking for its memory", functions_.memory_use, &use);
  return {use.free, use.total, use.used, use.peak};
}

// ---- between devices --------------------------------------------------------------------------

class CudaBackend::Connected final : public DevicePeers {
 public:
  Connected(CudaBackend& backend, cuda::Peers* peers)
      : backend_(backend), peers_(peers, backend.functions_.disconnect_peers) {}

  void exchange(std::span<const Part> out, std::span<const Part> in, DType wire) override {
    const auto sent = parts_of(out), received = parts_of(in);
    backend_.call("exchanging between GPUs", backend_.functions_.exchange, peers_.get(),
                  sent.data(), int64_t(sent.size()), received.data(), int64_t(received.size()),
                  wire == DType::bf16);
  }
  void reduce(std::span<const Part> parts) override {
    const auto all = parts_of(parts);
    backend_.call("summing between GPUs", backend_.functions_.reduce, peers_.get(), all.data(),
                  int64_t(all.size()));
  }
  void mark(int place) override {
    backend_.call("marking a place", backend_.functions_.mark, peers_.get(), place);
  }
  void beside(int place, const std::function<void()>& work) override {
    constexpr const char* kName = "work beside other work";
    backend_.call(kName, backend_.functions_.begin_beside, peers_.get(), place);
    try {
      work();
    } catch (...) {
      backend_.functions_.end_beside(backend_.context_.get(), peers_.get());
      throw;
    }
    backend_.call(kName, backend_.functions_.end_beside, peers_.get());
  }
  double waited() override {
    double seconds = 0;
    backend_.call("timing exchanges", backend_.functions_.waited_for_peers, peers_.get(), &seconds);
    return seconds;
  }

 private:
  static std::vector<cuda::PeerPart> parts_of(std::span<const Part> parts) {
    std::vector<cuda::PeerPart> out;
    for (const Part& p : parts) {
      if (p.count > 0) out.push_back({p.rank, p.data, p.count});
    }
    return out;
  }

  CudaBackend& backend_;
  std::unique_ptr<cuda::Peers, void (*)(cuda::Peers*)> peers_;
};

std::string CudaBackend::device_id() const {
  std::string id(16, '\0');
  call("asking for its number", functions_.device_id, id.data());
  return id;
}

PeerId CudaBackend::make_peer_id() {
  cuda::PeerId id;
  call("making a group of GPUs", functions_.make_peer_id, &id);
  PeerId out;
  std::copy(std::begin(id.bytes), std::end(id.bytes), out.begin());
  return out;
}

std::unique_ptr<DevicePeers> CudaBackend::connect_peers(const PeerId& id, int rank, int size,
                                                        double seconds) {
  cuda::PeerId copy;
  std::copy(id.begin(), id.end(), std::begin(copy.bytes));
  cuda::Peers* peers = nullptr;
  call("connecting the GPUs", functions_.connect_peers, &copy, rank, size, seconds, &peers);
  return std::make_unique<Connected>(*this, peers);
}

// ---- matrix products ------------------------------------------------------------------------

void CudaBackend::linear(Tensor x, Tensor w, Tensor bias, Tensor y) {
  check_shape(w, y.cols, x.cols);
  check_shape(y, x.rows, w.rows);
  if (bias) check_vector(bias, w.rows);
  call("linear", functions_.linear, any(x), of(w), of(bias), any(y));
}

void CudaBackend::linear_backward_input(Tensor dy, Tensor w, Tensor dx, bool accumulate) {
  check_shape(w, dy.cols, dx.cols);
  check_shape(dx, dy.rows, w.cols);
  FINETUNE_CHECK(!accumulate || dx.dtype == DType::f32);
  call("linear_backward_input", functions_.linear_backward_input, any(dy), of(w), any(dx),
       accumulate);
}

void CudaBackend::linear_backward_weight(Tensor dy, Tensor x, Tensor dw, Tensor dbias,
                                         bool accumulate) {
  check_shape(dw, dy.cols, x.cols);
  check_shape(x, dy.rows, dw.cols);
  if (dbias) check_vector(dbias, dy.cols);
  call("linear_backward_weight", functions_.linear_backward_weight, any(dy), any(x), of(dw),
       of(dbias), accumulate);
}

// ---- elementwise, rows ------------------------------------------------------------------------

void CudaBackend::activation(Activation f, Tensor x, Tensor y) {
  check_same(y, x);
  check_same_type(x, {y});
  call("activation", functions_.activation, of(f), any(x), any(y));
}

void CudaBackend::activation_backward(Activation f, Tensor x, Tensor dy, Tensor dx) {
  check_same(dy, x);
  check_same(dx, x);
  check_same_type(x, {dy, dx});
  call("activation_backward", functions_.activation_backward, of(f), any(x), any(dy), any(dx));
}

void CudaBackend::dropout(Tensor x, Dropout dropout, RowNames names, Tensor y) {
  check_same(y, x);
  call("dropout", functions_.dropout, of(x), dropout, of(names), of(y));
}

void CudaBackend::add(Tensor x, Tensor y) {
  check_same(y, x);
  call("add", functions_.add, of(x), of(y));
}

void CudaBackend::gather_rows(Tensor x, const int32_t* index, Tensor y) {
  check_shape(y, y.rows, x.cols);
  call("gather_rows", functions_.gather_rows, of(x), index, of(y));
}

void CudaBackend::scatter_rows_add(Tensor dy, const int32_t* index, Tensor x) {
  check_shape(x, x.rows, dy.cols);
  call("scatter_rows_add", functions_.scatter_rows_add, of(dy), index, of(x));
}

void CudaBackend::scatter_rows(Tensor x, const int32_t* index, Tensor y) {
  check_shape(y, y.rows, x.cols);
  call("scatter_rows", functions_.scatter_rows, of(x), index, of(y));
}

// ---- embeddings, layer normalisation
// --------------------------------------------------------------

void CudaBackend::embed(const int32_t* ids, const uint32_t* positions, const int32_t* types,
                        Tensor word, Tensor position, Tensor type, Tensor y) {
  FINETUNE_CHECK(word.cols == y.cols && position.cols == y.cols && type.cols == y.cols);
  call("embed", functions_.embed, cuda::Tokens{y.rows, ids, positions, types, nullptr}, of(word),
       of(position), of(type), of(y));
}

void CudaBackend::embed_backward(Tensor dy, const int32_t* ids, const uint32_t* positions,
                                 const int32_t* types, const int32_t* order, Tensor dword,
                                 Tensor dposition, Tensor dtype) {
  for (Tensor t : {dword, dposition, dtype}) {
    FINETUNE_CHECK(t.cols == dy.cols && t.contiguous());
  }
  call("embed_backward", functions_.embed_backward, of(dy),
       cuda::Tokens{dy.rows, ids, positions, types, order}, of(dword), of(dposition), of(dtype));
}

void CudaBackend::add_layer_norm(Tensor x, Tensor residual, Dropout dropout, RowNames names,
                                 Tensor gamma, Tensor beta, float epsilon, Tensor s, Tensor stats,
                                 Tensor y, Tensor rounded) {
  check_same(y, x);
  if (rounded) check_same(rounded, x);
  check_vector(gamma, x.cols);
  check_vector(beta, x.cols);
  if (residual) check_same(residual, x);
  if (s) check_same(s, x);
  if (stats) check_shape(stats, x.rows, 2);
  call("add_layer_norm", functions_.add_layer_norm, of(x), of(residual), dropout, of(names),
       of(gamma), of(beta), epsilon, of(s), of(stats), of(y), bf16_of(rounded));
}

void CudaBackend::add_layer_norm_backward(Tensor dy, Tensor s, Tensor stats, Tensor gamma,
                                          Dropout dropout, RowNames names, Tensor ds, Tensor dx,
                                          Tensor dgamma, Tensor dbeta, bool accumulate) {
  check_same(dy, s);
  check_same(ds, s);
  check_shape(stats, s.rows, 2);
  for (Tensor t : {gamma, dgamma, dbeta}) check_vector(t, s.cols);
  if (dx) check_same(dx, s);
  FINETUNE_CHECK(!dx || dx.data != ds.data || !dropout.on());
  call("add_layer_norm_backward", functions_.add_layer_norm_backward, of(dy), of(s), of(stats),
       of(gamma), dropout, of(names), of(ds), any(dx), of(dgamma), of(dbeta), accumulate);
}

// ---- attention --------------------------------------------------------------------------------

namespace {

constexpr int64_t kLargestHead = 128;  // cuda/attention.h

void check_attention(const AttentionShape& shape, Tensor q, Tensor k, Tensor v, Tensor out) {
  FINETUNE_CHECK(shape.queries.count == shape.keys.count);
  if (shape.head_size > kLargestHead) {
    throw device_error("attention heads of ", shape.head_size, " are more than the ", kLargestHead,
                       " that the GPU's kernels take: use --device cpu");
  }
  check_shape(q, q.rows, shape.heads * shape.head_size);
  check_shape(k, k.rows, q.cols);
  check_same(v, k);
  check_same(out, q);
}

}  // namespace

void CudaBackend::attention(const AttentionShape& shape, Dropout dropout, Tensor q, Tensor k,
                            Tensor v, Tensor out, Tensor lse) {
  check_attention(shape, q, k, v, out);
  if (lse) check_shape(lse, shape.heads, q.rows);
  check_same_type(q, {k, v, out});
  call("attention", functions_.attention, of(shape), dropout, any(q), any(k), any(v), any(out),
       of(lse));
}

void CudaBackend::attention_backward(const AttentionShape& shape, Dropout dropout, Tensor q,
                                     Tensor k, Tensor v, Tensor out, Tensor lse, Tensor dout,
                                     Tensor dq, Tensor dk, Tensor dv) {
  check_attention(shape, q, k, v, out);
  check_shape(lse, shape.heads, q.rows);
  check_same(dout, q);
  check_same(dq, q);
  check_same(dk, k);
  check_same(dv, k);
  check_same_type(q, {k, v, out, dout, dq, dk, dv});
  call("attention_backward", functions_.attention_backward, of(shape), dropout, any(q), any(k),
       any(v), any(out), of(lse), any(dout), any(dq), any(dk), any(dv));
}

// ---- losses -------------------------------------------------------------------------------------

void CudaBackend::cross_entropy(Tensor logits, const int32_t* labels, Tensor weights,
                                float smoothing, LossScale scale, Tensor losses, Tensor dlogits) {
  check_losses(logits, losses, dlogits, logits.rows);
  if (weights) check_vector(weights, logits.cols);
  call("cross_entropy", functions_.cross_entropy, of(logits), labels, of(weights), smoothing,
       of(scale), of(losses), of(dlogits));
}

void CudaBackend::binary_cross_entropy(Tensor logits, Tensor targets, Tensor weights,
                                       LossScale scale, Tensor losses, Tensor dlogits) {
  check_losses(logits, losses, dlogits, logits.rows);
  check_same(targets, logits);
  if (weights) check_vector(weights, logits.cols);
  call("binary_cross_entropy", functions_.binary_cross_entropy, of(logits), of(targets),
       of(weights), of(scale), of(losses), of(dlogits));
}

void CudaBackend::squared_error(Tensor logits, Tensor targets, LossScale scale, Tensor losses,
                                Tensor dlogits) {
  check_losses(logits, losses, dlogits, logits.rows);
  FINETUNE_CHECK(logits.cols == 1);
  check_shape(targets, 1, logits.rows);
  call("squared_error", functions_.squared_error, of(logits), of(targets), of(scale), of(losses),
       of(dlogits));
}

void CudaBackend::span_cross_entropy(Tensor logits, Segments segments, const int32_t* starts,
                                     const int32_t* ends, LossScale scale, Tensor losses,
                                     Tensor dlogits) {
  check_losses(logits, losses, dlogits, segments.count);
  FINETUNE_CHECK(logits.cols == 2);
  call("span_cross_entropy", functions_.span_cross_entropy, of(logits), of(segments), starts, ends,
       of(scale), of(losses), of(dlogits));
}

// ---- optimizer ----------------------------------------------------------------------------------

void CudaBackend::merge(std::span<const Addition> additions, int64_t count) {
  for (const Addition& a : additions) {
    call("merge", functions_.merge, cuda::Addition{a.to, a.from}, count);
  }
}

void CudaBackend::merge_rows(std::span<const Addition> additions, RowList rows, int64_t cols) {
  for (const Addition& a : additions) {
    call("merge_rows", functions_.merge_rows, cuda::Addition{a.to, a.from}, of(rows), cols);
  }
}

// Reading zeros costs the GPU less than finding them: `sparse` is not used.
void CudaBackend::block_square_sums(Tensor x, int64_t block, const SparseRows&, double* sums) {
  FINETUNE_CHECK(x.rows == 1 && block > 0);
  call("block_square_sums", functions_.block_square_sums, of(x), block, sums);
}

void CudaBackend::add_losses(Tensor losses, bool accumulate, double* sum) {
  FINETUNE_CHECK(losses.rows == 1);
  call("add_losses", functions_.add_losses, of(losses), accumulate, sum);
}

void CudaBackend::step_outcome(const StepSums& s, StepOutcome* outcome) {
  call("step_outcome", functions_.step_outcome,
       cuda::StepSums{s.losses, s.shards, s.denominator, s.squares, s.blocks, s.max_norm, s.wishes,
                      s.processes},
       outcome);
}

void CudaBackend::adamw(const AdamW& options, Tensor parameter, Tensor gradient, Tensor m,
                        Tensor v) {
  FINETUNE_CHECK(parameter.rows == 1);
  check_arenas(parameter, {gradient, m, v});
  call("adamw", functions_.adamw, of(options), of(parameter), of(gradient), of(m), of(v));
}

void CudaBackend::adamw_parts(std::span<const AdamWPart> parts, Tensor parameter, Tensor gradient,
                              Tensor m, Tensor v) {
  FINETUNE_CHECK(parameter.rows == 1);
  check_arenas(parameter, {gradient, m, v});
  parts_.clear();
  for (const AdamWPart& part : parts) {
    FINETUNE_CHECK(part.begin >= 0 && part.count >= 0 && part.begin + part.count <= parameter.cols);
    parts_.push_back({of(part.options), part.begin, part.count, 0, nullptr});
  }
  call("adamw", functions_.adamw_parts, parts_.data(), int64_t(parts_.size()), of(parameter),
       of(gradient), of(m), of(v));
}

void CudaBackend::adamw_rows(const AdamW& options, RowList rows, Tensor parameter, Tensor gradient,
                             Tensor m, Tensor v) {
  check_arenas(parameter, {gradient, m, v});
  call("adamw_rows", functions_.adamw_rows, of(options), of(rows), of(parameter), of(gradient),
       of(m), of(v));
}

void CudaBackend::adamw_catch_up(std::span<const AdamW> steps, RowList rows, const int32_t* missed,
                                 Tensor parameter, Tensor m, Tensor v) {
  check_arenas(parameter, {m, v});
  steps_.clear();
  for (const AdamW& step : steps) steps_.push_back(of(step));
  call("adamw_catch_up", functions_.adamw_catch_up, steps_.data(), int64_t(steps_.size()), of(rows),
       missed, of(parameter), of(m), of(v));
}

}  // namespace finetune

// Every arithmetic operation of the program: its shapes and formula, once. A backend (cpu/, cuda/;
// reference/ in double precision for the tests) implements them all, declared from the list in
// ops/operations.inc; the model is written against this interface and does not know the device.
//
// Shapes are written (rows, cols). T is the number of packed tokens of a micro-batch, B the number
// of sequences, H the hidden size. A Tensor may be a strided view unless "contiguous" is said.
// Tensors are f32 but where "or bf16" is said, of backends whose activation_type is bf16: values
// are rounded to nearest even as they are written. Tensors point into the backend's own memory
// (allocate). Work may be asynchronous; download() and synchronize() wait for it. Nothing here
// allocates after the first call with the largest shapes. Shapes that do not fit are a bug of the
// caller (FINETUNE_CHECK).
//
// "+=" marks results that are added to what is there; all others are overwritten. Sums run in a
// fixed order that depends on shapes alone: same bits for any number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "core/numeric/download_limits.h"
#include "core/numeric/philox.h"
#include "core/numeric/step_outcome.h"
#include "core/numeric/tensor.h"
#include "ops/device_peers.h"
#include "ops/host_copies.h"
#include "ops/operands.h"

namespace finetune {

// The words of ops/operations.inc for tensors that may be bf16, and for those that always are.
using AnyTensor = Tensor;
using Bf16Tensor = Tensor;

// An encoder layer with H = hidden.
struct LayerShape {
  int64_t hidden = 0;
  int64_t head_size = 0;
  int64_t inner = 0;
  Activation activation = Activation::gelu;
};

// What follows attention in an encoder layer.
struct LayerOutput {
  Tensor attention_weight;                 // (H, H)
  Tensor attention_bias;                   // (1, H)
  Tensor attention_gamma, attention_beta;  // (1, H)
  Tensor inner_weight;                     // (inner, H)
  Tensor inner_bias;                       // (1, inner)
  Tensor output_weight;                    // (H, inner)
  Tensor output_bias;                      // (1, H)
  Tensor output_gamma, output_beta;        // (1, H)
  float epsilon = 0;                       // of both normalisations
  Activation activation = Activation::gelu;

  int64_t hidden() const { return attention_weight.rows; }
  int64_t inner() const { return inner_weight.rows; }
};

struct AdamW {
  float learning_rate = 0;
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
  float weight_decay = 0;    // 0 for parameters without decay
  int64_t step = 1;          // 1 for the first update
  float gradient_scale = 1;  // of clipping
  // Backend memory, or null. The scale is its own then, and nothing happens where it is not finite.
  const StepOutcome* outcome = nullptr;
};

// Elements [begin, begin + count) of arenas, with options of their own. With `cols` the parameter
// is a matrix with so many columns whose gradient nobody reads any more: until that is overwritten
// its memory is the backend's, for what products read of the new weights (forget_packed).
struct AdamWPart {
  AdamW options;
  int64_t begin = 0, count = 0;
  int64_t cols = 0;
};

// Gradient norms are summed in double over blocks of about this many elements, then the block sums
// are added by a fixed binary tree: same bits however the arena is split over threads or processes.
constexpr int64_t kNormBlock = 1 << 14;

// Of a device with memory of its own, in bytes; zeros where the program's memory is the device's.
struct DeviceMemory {
  int64_t free = 0, total = 0;  // of the device, now
  int64_t used = 0, peak = 0;   // of this backend: what it has allocated
};

// A device's memory is too small. What would help is known to who has planned it.
class OutOfDeviceMemory : public Error {
 public:
  explicit OutOfDeviceMemory(const std::string& message) : Error(ExitCode::device, message) {}
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string description() const = 0;  // "CPU, AVX-512, bf16, 2 threads"
  // As much of it as bits depend on.
  virtual std::string code_path() const { return description(); }
  virtual DType compute_type() const = 0;  // of the operands of matrix products
  // In which the model keeps what only products, attention and activations read.
  virtual DType activation_type() const { return DType::f32; }

  // ---- memory -------------------------------------------------------------------------------
  // 64-byte aligned, zeroed. OutOfDeviceMemory, as operations may that need memory of their own.
  virtual std::shared_ptr<void> allocate(size_t bytes) = 0;
  // False: only upload() and download() reach that memory.
  virtual bool uses_host_memory() const { return true; }
  // Memory of the host, zeroed, with which a device exchanges at full speed. Error(device).
  virtual std::shared_ptr<void> allocate_on_host(size_t bytes) { return allocate(bytes); }
  // Copies of so many numbers, which live no longer than the backend and are no part of work that
  // is replayed; null where all memory is the host's.
  virtual std::unique_ptr<HostCopies> make_host_copies(int /*numbers*/) { return nullptr; }
  virtual void upload(void* to, const void* host, size_t bytes) = 0;
  virtual void download(void* host, const void* from, size_t bytes) = 0;
  // download() in two parts, between which work goes on: start_download() copies up to
  // kMostQueuedBytes as the work before it leaves them, finish_download() waits for the oldest
  // copy. At most kMostQueued at a time.
  virtual void start_download(const void* from, size_t bytes) = 0;
  virtual void finish_download(void* host, size_t bytes) = 0;
  // Calls `work`, or has the device do once more what it did when it was called with this key. So
  // work with one key takes the same operations, pointers, shapes and numbers always; what differs
  // from call to call lies in backend memory (as DropoutStream, LossScale, Segments::offsets do).
  // It writes no weights and uploads, downloads and allocates nothing. Same bits either way.
  virtual void replay(std::span<const int64_t> /*key*/, const std::function<void()>& work) {
    work();
  }
  // Whether it is worth while to make keys alike.
  virtual bool replays() const { return false; }
  virtual void fill_zero(Tensor x) = 0;
  virtual void synchronize() = 0;
  virtual DeviceMemory device_memory() const { return {}; }

  // Weights, or gradients of AdamWParts with `cols`, are about to be freed, or to be written by
  // others than adamw*, merge, linear_backward_weight, fill_zero and upload: nothing that is kept
  // of them is read any more.
  virtual void forget_packed() {}

  // ---- between devices ----------------------------------------------------------------------
  // What names the device among those of all hosts; empty where processes cannot be connected.
  virtual std::string device_id() const { return ""; }
  virtual PeerId make_peer_id() { return {}; }
  // Collective among the processes of the group, each with another device. Peers live no longer
  // than the backend. While they live whatever waits for the device is an Error(device) if a peer
  // fails, or if the device has waited `seconds` for what they exchange (0: however long it takes);
  // the device can then be used no more.
  virtual std::unique_ptr<DevicePeers> connect_peers(const PeerId&, int /*rank*/, int /*size*/,
                                                     double /*seconds*/) {
    return nullptr;
  }

  // ---- matrix products ----------------------------------------------------------------------
  // x, y, dy, and dx without `accumulate`, may be f32 or bf16 each.
  // y (R, out) = x (R, in) * w (out, in)^T + bias (1, out); bias may be absent
  virtual void linear(Tensor x, Tensor w, Tensor bias, Tensor y) = 0;
  // dx (R, in) = dy (R, out) * w (out, in); with `accumulate` dx +=
  virtual void linear_backward_input(Tensor dy, Tensor w, Tensor dx, bool accumulate) = 0;
  // dw (out, in) = dy^T * x; dbias (1, out) = column sums of dy; with `accumulate` both +=; dbias
  // may be absent
  virtual void linear_backward_weight(Tensor dy, Tensor x, Tensor dw, Tensor dbias,
                                      bool accumulate) = 0;

  // ---- elementwise --------------------------------------------------------------------------
  // Activations: all tensors of a call f32 or all bf16.
  // y = f(x); gelu is the exact erf form, gelu_tanh is "gelu_new". x and y (R, N), may be one.
  virtual void activation(Activation f, Tensor x, Tensor y) = 0;
  // dx = dy * f'(x), x being the input of the forward call; dy and dx may be one. y = f(x) again,
  // with the bits of activation(), may be x's memory, or absent.
  virtual void activation_backward(Activation f, Tensor x, Tensor dy, Tensor dx, Tensor y) = 0;
  // y = x * mask / (1 - p); also its own gradient. x and y (R, N), may be one.
  virtual void dropout(Tensor x, Dropout dropout, RowNames names, Tensor y) = 0;
  virtual void add(Tensor x, Tensor y) = 0;  // y += x

  // ---- rows ---------------------------------------------------------------------------------
  // y (R, N): row r = x row index[r]
  virtual void gather_rows(Tensor x, const int32_t* index, Tensor y) = 0;
  // x row index[r] += dy row r; indices are distinct
  virtual void scatter_rows_add(Tensor dy, const int32_t* index, Tensor x) = 0;
  // y row index[r] = x row r; indices are distinct
  virtual void scatter_rows(Tensor x, const int32_t* index, Tensor y) = 0;

  // ---- embeddings ---------------------------------------------------------------------------
  // y (T, H) = word[ids] + position[positions] + type[types]; tables contiguous, each with a row
  // for every index. `type` may be absent: then `types` is not read.
  virtual void embed(const int32_t* ids, const uint32_t* positions, const int32_t* types,
                     Tensor word, Tensor position, Tensor type, Tensor y) = 0;
  // dword[ids[t]] += dy row t, and so on; dtype may be absent. `order` (T) lists the tokens sorted
  // by id (stable), so that each word's rows are summed in order by one thread.
  virtual void embed_backward(Tensor dy, const int32_t* ids, const uint32_t* positions,
                              const int32_t* types, const int32_t* order, Tensor dword,
                              Tensor dposition, Tensor dtype) = 0;

  // ---- layer normalisation --------------------------------------------------------------------
  // s = residual + dropout(x); y = (s - mean(s)) / sqrt(var(s) + epsilon) * gamma + beta, row by
  // row over N, biased variance. Keeps s (R, N) and stats (R, 2) = {mean, 1/sqrt(var + epsilon)}
  // for the backward pass (both may be absent in inference). residual may be absent (then it is 0).
  // s may be x or residual. `rounded` (R, N), which may be absent, is y in bf16.
  virtual void add_layer_norm(Tensor x, Tensor residual, Dropout dropout, RowNames names,
                              Tensor gamma, Tensor beta, float epsilon, Tensor s, Tensor stats,
                              Tensor y, Tensor rounded = {}) = 0;
  // ds = gradient of s; dx = ds * mask / (1 - p), f32 or bf16; dgamma, dbeta (1, N) =, with
  // `accumulate` +=. dx may be absent (no dropout branch wanted) or, where dropout is off, the same
  // as ds. ds may be dy.
  virtual void add_layer_norm_backward(Tensor dy, Tensor s, Tensor stats, Tensor gamma,
                                       Dropout dropout, RowNames names, Tensor ds, Tensor dx,
                                       Tensor dgamma, Tensor dbeta, bool accumulate) = 0;

  // ---- attention ------------------------------------------------------------------------------
  // All tensors of a call but lse f32 or all bf16; scores, sums and lse are fp32.
  // For each sequence and head: P = softmax(scale * Q K^T), out = dropout(P) V.
  // q (Tq, heads*head_size), k and v (Tk, heads*head_size), out as q. lse (heads, Tq) keeps
  // log(sum(exp(scale * q k))) for the backward pass (absent in inference). The probability of
  // query i of sequence b for its key j in head h (i, j, counted inside the sequence, h from 0)
  // takes dropout_bits(key, first_head + h, samples[b], step, i * key_length(b) + j).
  virtual void attention(const AttentionShape& shape, Dropout dropout, Tensor q, Tensor k, Tensor v,
                         Tensor out, Tensor lse) = 0;
  // Whether long sequences' attention is a library's, which drops out others: from the key, the
  // step and the first sample of the call, and the same ones forwards and backwards.
  virtual bool library_attention() const { return false; }
  // dq, dk, dv overwritten.
  virtual void attention_backward(const AttentionShape& shape, Dropout dropout, Tensor q, Tensor k,
                                  Tensor v, Tensor out, Tensor lse, Tensor dout, Tensor dq,
                                  Tensor dk, Tensor dv) = 0;

  // ---- encoder layer in inference ---------------------------------------------------------------
  // A layer in two operations, for backends that compute it faster whole than in parts; the others
  // say no and have neither.
  virtual bool has_layer(const LayerShape&) const { return false; }
  // context (Tq, H) in bf16 = attention of q, k, v, these three = x * weight^T + bias with weight
  // (3H, H), bias (1, 3H). Where `first` (Tq, H) is given, q comes of its rows instead of x (T, H).
  virtual void self_attention(const AttentionShape&, Tensor /*x*/, Tensor /*first*/,
                              Tensor /*weight*/, Tensor /*bias*/, Tensor /*context*/) {
    FINETUNE_CHECK(false);
  }
  // y (R, H) = LN(m + f(m * inner^T + bias) * output^T + bias), m = LN(residual + context *
  // attention^T + bias); context (R, H) in bf16. y may be residual.
  virtual void layer_output(const LayerOutput&, Tensor /*context*/, Tensor /*residual*/,
                            Tensor /*y*/) {
    FINETUNE_CHECK(false);
  }

  // ---- losses ---------------------------------------------------------------------------------
  // Each writes one loss per sample, losses (1, B), already weighted but not yet divided by the
  // batch's denominator, and dlogits = `scale` * d(loss)/d(logits); `scale` is 1 / denominator of
  // the global batch, or 0. dlogits may be absent (evaluation), and may be logits.

  // logits (B, C), labels (B) in [0, C); weights (1, C) may be absent (all 1).
  // loss = w[y] * ((1 - smoothing) * nll(y) + smoothing / C * sum_c nll(c)); torch weights by w[c]
  virtual void cross_entropy(Tensor logits, const int32_t* labels, Tensor weights, float smoothing,
                             LossScale scale, Tensor losses, Tensor dlogits) = 0;
  // logits and targets (B, C), weights (1, C) on the classes may be absent;
  // loss = mean over C of binary cross-entropy with logits
  virtual void binary_cross_entropy(Tensor logits, Tensor targets, Tensor weights, LossScale scale,
                                    Tensor losses, Tensor dlogits) = 0;
  // logits (B, 1), targets (1, B); loss = (logit - target)^2
  virtual void squared_error(Tensor logits, Tensor targets, LossScale scale, Tensor losses,
                             Tensor dlogits) = 0;
  // logits (T, 2): column 0 start, column 1 end. Softmax over each segment's rows. starts, ends
  // (B): positions inside the segment. loss = (nll(start) + nll(end)) / 2
  virtual void span_cross_entropy(Tensor logits, Segments segments, const int32_t* starts,
                                  const int32_t* ends, LossScale scale, Tensor losses,
                                  Tensor dlogits) = 0;

  // ---- optimizer --------------------------------------------------------------------------------
  // Sums of gradients in a given order: the additions one after the other, element by element. All
  // (count) contiguous, or rows of matrices (V, cols); of these `from` is zero afterwards.
  virtual void merge(std::span<const Addition> additions, int64_t count) = 0;
  virtual void merge_rows(std::span<const Addition> additions, RowList rows, int64_t cols) = 0;
  // sums[i] = sum of squares of x[i * block ...], in double; sums is backend memory. What `sparse`
  // says to be zero need not be read; the sums have the same bits with and without it.
  virtual void block_square_sums(Tensor x, int64_t block, const SparseRows& sparse,
                                 double* sums) = 0;
  // sum = losses (1, B), one after the other in double, each times its weight; weights (1, B) may
  // be absent (all 1). With `accumulate` sum +=. Backend memory.
  virtual void add_losses(Tensor losses, Tensor weights, bool accumulate, double* sum) = 0;
  // outcome = StepOutcome::of(loss, norm, max_norm), loss = tree_sum(losses) / denominator, norm =
  // sqrt(tree_sum(squares)) (core/numeric/tree_sum.h). Backend memory.
  virtual void step_outcome(const StepSums& sums, StepOutcome* outcome) = 0;
  // Decoupled weight decay (Loshchilov and Hutter, 2019) with bias correction, as
  // torch.optim.AdamW: p -= lr*wd*p; m = b1*m + (1-b1)*g; v = b2*v + (1-b2)*g^2; p -= lr/(1-b1^t) *
  // m / (sqrt(v)/sqrt(1-b2^t) + eps), with g = gradient_scale * gradient. All (1, N) contiguous.
  virtual void adamw(const AdamW& options, Tensor parameter, Tensor gradient, Tensor m,
                     Tensor v) = 0;
  // adamw for each of these parts of (1, N), which do not overlap. Same bits, but for the gradients
  // of parts with `cols`.
  virtual void adamw_parts(std::span<const AdamWPart> parts, Tensor parameter, Tensor gradient,
                           Tensor m, Tensor v) = 0;
  // adamw for these rows alone, whose gradient is set to zero; all (V, H) contiguous. Same bits as
  // adamw on the whole.
  virtual void adamw_rows(const AdamW& options, RowList rows, Tensor parameter, Tensor gradient,
                          Tensor m, Tensor v) = 0;
  // What rows without gradient have missed: row rows[i] takes the last missed[i] of `steps`, in
  // their order, with g = 0: p -= lr*wd*p; m = b1*m; v = b2*v; p -= lr/(1-b1^t) * m / (sqrt(v)/
  // sqrt(1-b2^t) + eps). Same bits as adamw on a zero gradient step by step. All (V, H) contiguous;
  // `steps` lives on the host, missed (count), from 0 to steps.size(), is backend memory.
  virtual void adamw_catch_up(std::span<const AdamW> steps, RowList rows, const int32_t* missed,
                              Tensor parameter, Tensor m, Tensor v) = 0;
};

// The CPU backend: kernels chosen at run time (ops/cpu/isa.h).
// FINETUNE_ISA=avx2|avx512|avx512_bf16|amx forces a path; Error(usage) for an unknown or missing
// one. With `compute` bf16 the operands of matrix products are rounded to bf16, sums and all else
// are fp32.
std::unique_ptr<Backend> make_cpu_backend(DType compute = DType::f32);
// Whether bf16 is multiplied as such here, and whether that is faster than fp32.
bool cpu_multiplies_bf16();
bool cpu_multiplies_bf16_fast();
// Plain loops in double precision over float data, for tests.
std::unique_ptr<Backend> make_reference_backend();

}  // namespace finetune

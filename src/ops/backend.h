// Every arithmetic operation of the program: its shapes and formula, once. A backend (cpu/, cuda/;
// reference/ in double precision for the tests) implements them all, declared from the list in
// ops/operations.inc; the model is written against this interface and does not know the device.
//
// Shapes are written (rows, cols). T is the number of packed tokens of a micro-batch, B the number
// of sequences, H the hidden size. A Tensor may be a strided view unless "contiguous" is said.
// Tensors are f32. Where "or bf16" is said, they may be bf16 if the backend's activation_type is
// bf16; values are rounded to nearest even when they are written. Tensors point into the backend's
// own memory (allocate). Work may be asynchronous; download() and synchronize() wait for it.
// Nothing here allocates after the first call with the largest shapes. Shapes that do not fit are a
// bug of the caller (FINETUNE_CHECK).
//
// "+=" marks results that are added to the old values; all others are overwritten. Sums run in a
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
#include "ops/scratch_sizes.h"
#include "ops/second_stream.h"

namespace finetune {

// Aliases used in ops/operations.inc: tensors that may be bf16, and tensors that always are.
using AnyTensor = Tensor;
using Bf16Tensor = Tensor;

// An encoder layer with H = hidden.
struct LayerShape {
  int64_t hidden = 0;
  int64_t head_size = 0;
  int64_t inner = 0;
  Activation activation = Activation::gelu;
};

// The second half of an encoder layer: everything after attention.
struct LayerOutput {
  // Weights of products are f32 or bf16.
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
  float gradient_scale = 1;  // from gradient clipping
  // Backend memory, or null. If set, its gradient scale is used, and nothing is updated if it is
  // not finite.
  const StepOutcome* outcome = nullptr;
};

// Elements [begin, begin + count) of arenas, with their own options. With `cols`, the parameter is
// a matrix with that many columns whose gradient is not read again. The backend may then use the
// gradient's memory to pack the new weights for matrix products, until the gradient is overwritten
// (forget_packed).
struct AdamWPart {
  AdamW options;
  int64_t begin = 0, count = 0;
  int64_t cols = 0;
};

// Gradient norms are summed in double over blocks of about this many elements; the block sums are
// added by a fixed binary tree. So the bits do not depend on how the arena is split over threads or
// processes.
constexpr int64_t kNormBlock = 1 << 14;

// Bytes of a device with memory of its own; zeros if the backend uses host memory.
struct DeviceMemory {
  int64_t free = 0, total = 0;  // of the device, now
  int64_t used = 0, peak = 0;   // allocated by this backend
};

// Thrown if a device's memory is too small. Callers that planned the memory add advice.
class OutOfDeviceMemory : public Error {
 public:
  explicit OutOfDeviceMemory(const std::string& message) : Error(ExitCode::device, message) {}
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string description() const = 0;  // "CPU, AVX-512, bf16, 2 threads"
  // The part of the description that results depend on.
  virtual std::string code_path() const { return description(); }
  virtual DType compute_type() const = 0;  // of the operands of matrix products
  // The type of activations that are read only by matrix products, attention and activation
  // functions.
  virtual DType activation_type() const { return DType::f32; }
  // The best type for weights of products that do not change. It is bf16 only if products round
  // their operands to bf16 anyway, so that the results are the same.
  virtual DType weight_type() const { return DType::f32; }

  // ---- memory -------------------------------------------------------------------------------
  // Returns zeroed memory, 64-byte aligned. Throws OutOfDeviceMemory; operations that need memory
  // of their own may throw it too.
  virtual std::shared_ptr<void> allocate(size_t bytes) = 0;
  // False: the memory can only be reached by upload() and download().
  virtual bool uses_host_memory() const { return true; }
  // Returns zeroed host memory for fast transfers to and from a device. Error(device).
  virtual std::shared_ptr<void> allocate_on_host(size_t bytes) { return allocate(bytes); }
  // Returns `numbers` numbered copy slots, which must not outlive the backend and are not part of
  // replayed work. Null if the backend uses host memory.
  virtual std::unique_ptr<HostCopies> make_host_copies(int /*numbers*/) { return nullptr; }
  virtual void upload(void* to, const void* host, size_t bytes) = 0;
  virtual void download(void* host, const void* from, size_t bytes) = 0;
  // A download() in two parts, between which work continues. start_download() enqueues a copy of up
  // to kMostQueuedBytes; finish_download() waits for the oldest one. At most kMostQueued copies may
  // be pending.
  virtual void start_download(const void* from, size_t bytes) = 0;
  virtual void finish_download(void* host, size_t bytes) = 0;
  // Calls `work`, or replays on the device what `work` did when it was called with this key. So
  // work with one key must always have the same operations, pointers, shapes and numbers; values
  // that change between calls must be in backend memory (DropoutStream, LossScale,
  // Segments::offsets). It must not write weights, upload, download or allocate. The bits are the
  // same either way.
  virtual void replay(std::span<const int64_t> /*key*/, const std::function<void()>& work) {
    work();
  }
  // Whether replay() replays, so that it saves time to call it with few different keys.
  virtual bool replays() const { return false; }
  // Whether the backend can compute weight gradients beside the operations that follow. It does so,
  // with the same bits, once memory is reserved for them. Larger ones are computed in order.
  virtual bool has_second_stream() const { return false; }
  virtual void reserve_second_stream(const SecondStreamLimits&) {}
  // Makes memory that operations would otherwise make anew for each larger micro-batch.
  virtual void reserve_scratch(const ScratchSizes&) {}
  virtual void fill_zero(Tensor x) = 0;
  virtual void synchronize() = 0;
  virtual DeviceMemory device_memory() const { return {}; }

  // Forgets all packed copies of weights, also those in gradients (AdamWPart::cols). Call before
  // memory of weights or of such gradients is freed, or written by anything but adamw*, merge,
  // linear_backward_weight, fill_zero and upload.
  virtual void forget_packed() {}

  // ---- between devices ----------------------------------------------------------------------
  // Identifies the device among those of all hosts; "" if processes cannot be connected.
  virtual std::string device_id() const { return ""; }
  virtual PeerId make_peer_id() { return {}; }
  // Collective among the processes of the group, each with a different device. Peers must not
  // outlive the backend. While they exist, any wait for the device throws Error(device) if a peer
  // fails, or if the device has waited `seconds` in an exchange (0: no limit). The device cannot be
  // used afterwards.
  virtual std::unique_ptr<DevicePeers> connect_peers(const PeerId&, int /*rank*/, int /*size*/,
                                                     double /*seconds*/) {
    return nullptr;
  }

  // ---- matrix products ----------------------------------------------------------------------
  // x, y, dy, and dx without `accumulate`, may each be f32 or bf16; so may w in linear().
  // y (R, out) = x (R, in) * w (out, in)^T + bias (1, out); bias may be absent
  virtual void linear(Tensor x, Tensor w, Tensor bias, Tensor y) = 0;
  // dx (R, in) = dy (R, out) * w (out, in); with `accumulate` dx +=
  virtual void linear_backward_input(Tensor dy, Tensor w, Tensor dx, bool accumulate) = 0;
  // dw (out, in) = dy^T * x; dbias (1, out) = column sums of dy; with `accumulate` both +=; dbias
  // may be absent
  virtual void linear_backward_weight(Tensor dy, Tensor x, Tensor dw, Tensor dbias,
                                      bool accumulate) = 0;

  // ---- elementwise --------------------------------------------------------------------------
  // Activations: all tensors of a call are f32, or all are bf16. y = f(x); gelu is the exact erf
  // form, gelu_tanh is "gelu_new". x and y (R, N) may be the same.
  virtual void activation(Activation f, Tensor x, Tensor y) = 0;
  // dx = dy * f'(x), where x is the input of the forward call; dy and dx may be the same. If
  // present, y = f(x) is recomputed with the bits of activation(); it may be x's memory. If
  // present, sums (1, N) = or, with `accumulate`, += column sums of dx before it is rounded.
  virtual void activation_backward(Activation f, Tensor x, Tensor dy, Tensor dx, Tensor y,
                                   Tensor sums = {}, bool accumulate = false) = 0;
  // Whether this and add_layer_norm_backward have `sums`; else they must be absent.
  virtual bool sums_columns() const { return false; }
  // y = x * mask / (1 - p); this is also its own gradient. x and y (R, N) may be the same.
  virtual void dropout(Tensor x, Dropout dropout, RowNames names, Tensor y) = 0;
  // y (R, N) = dropout(f(u) * g), with u the first N columns of x (R, 2N) and g the others. Dropout
  // counts y's columns from first_column on. All tensors of a call have one type; y may be u.
  virtual void gated_activation(Activation f, Tensor x, Dropout dropout, RowNames names,
                                int64_t first_column, Tensor y) = 0;
  // dx (R, 2N) from dy (R, N) and the forward call's x; y is recomputed with its bits. dx may be x,
  // and y may be dy.
  virtual void gated_activation_backward(Activation f, Tensor x, Tensor dy, Dropout dropout,
                                         RowNames names, int64_t first_column, Tensor dx,
                                         Tensor y) = 0;
  // Rotary position embedding (Su et al., 2021). x and y (R, heads * head_size), f32 or bf16 both,
  // may be the same. Row r rotates by row positions[r] of table (., head_size), cosines then sines:
  // with d = head_size / 2, c < d: y_c = x_c cos_c - x_(c+d) sin_c, y_(c+d) = x_(c+d) cos_c + x_c
  // sin_c. With `back` the sines change sign, which is the gradient.
  virtual void rotate(Tensor x, const uint32_t* positions, Tensor table, bool back, Tensor y) = 0;
  virtual void add(Tensor x, Tensor y) = 0;  // y += x

  // ---- rows ---------------------------------------------------------------------------------
  // y (R, N): row r = x row index[r]
  virtual void gather_rows(Tensor x, const int32_t* index, Tensor y) = 0;
  // x row index[r] += dy row r; indices are distinct
  virtual void scatter_rows_add(Tensor dy, const int32_t* index, Tensor x) = 0;
  // y row index[r] = x row r; indices are distinct
  virtual void scatter_rows(Tensor x, const int32_t* index, Tensor y) = 0;
  // y (B, N): row b = mean of x's rows in segment b; no segment is empty
  virtual void segment_mean(Tensor x, Segments segments, Tensor y) = 0;
  // dx (T, N): each row of segment b = dy row b / the segment's length
  virtual void segment_mean_backward(Tensor dy, Segments segments, Tensor dx) = 0;

  // y (T, N * taps): element (t, c * taps + m) = x (t + m - taps / 2, c), or 0 if that row is not
  // in the segment of t. `taps` is odd. The product of y and a weight (out, N * taps) is a
  // convolution.
  virtual void gather_taps(Tensor x, Segments segments, int64_t taps, Tensor y) = 0;
  // dx (T, N): for each element of x the sum of dy's elements copied from it, in order of taps
  virtual void gather_taps_backward(Tensor dy, Segments segments, int64_t taps, Tensor dx) = 0;

  // ---- embeddings ---------------------------------------------------------------------------
  // y (T, H) = word[ids] + position[positions] + type[types]; tables are contiguous, with a row for
  // every index. If `position` or `type` is absent, its indices are not read.
  virtual void embed(const int32_t* ids, const uint32_t* positions, const int32_t* types,
                     Tensor word, Tensor position, Tensor type, Tensor y) = 0;
  // dword[ids[t]] += dy row t, and likewise for the other tables; dposition and dtype may be
  // absent. `order` (T) lists the tokens sorted by id (stable), so that one thread sums each word's
  // rows in order.
  virtual void embed_backward(Tensor dy, const int32_t* ids, const uint32_t* positions,
                              const int32_t* types, const int32_t* order, Tensor dword,
                              Tensor dposition, Tensor dtype) = 0;

  // ---- layer normalisation --------------------------------------------------------------------
  // s = residual + dropout(x); y = (s - mean(s)) / sqrt(var(s) + epsilon) * gamma + beta, row by
  // row over N, biased variance. Keeps s (R, N) and stats (R, 2) = {mean, 1/sqrt(var + epsilon)}
  // for the backward pass (both may be absent in inference). residual and beta may be absent (then
  // they are 0). s may be x or residual. `rounded` (R, N), which may be absent, is y in bf16.
  virtual void add_layer_norm(Tensor x, Tensor residual, Dropout dropout, RowNames names,
                              Tensor gamma, Tensor beta, float epsilon, Tensor s, Tensor stats,
                              Tensor y, Tensor rounded = {}) = 0;
  // ds = gradient of s; dx = ds * mask / (1 - p), f32 or bf16; dgamma, dbeta (1, N) =, with
  // `accumulate` +=. dx may be absent (no dropout branch) or, if dropout is off, the same as ds. ds
  // may be dy. dbeta may be absent. If present, sums (1, N) = or += column sums of dx before it is
  // rounded, or of ds if dx is absent.
  virtual void add_layer_norm_backward(Tensor dy, Tensor s, Tensor stats, Tensor gamma,
                                       Dropout dropout, RowNames names, Tensor ds, Tensor dx,
                                       Tensor dgamma, Tensor dbeta, bool accumulate,
                                       Tensor sums = {}) = 0;

  // ---- attention ------------------------------------------------------------------------------
  // All tensors of a call except lse are f32, or all are bf16; scores, sums and lse are fp32. For
  // each sequence and head: P = softmax(scale * Q K^T + shape.bias), out = dropout(P) V, where P is
  // 0 outside of the shape's window (and not computed). q (Tq, heads*head_size), k and v (Tk,
  // heads*head_size), out as q. lse (heads, Tq) keeps log(sum(exp(scale * q k))) for the backward
  // pass (absent in inference). The probability of query i of sequence b for its key j in head h
  // (i, j inside the sequence, h from 0) uses dropout_bits(key, first_head + h, samples[b], step, i
  // * key_length(b) + j). `mask`, which may be absent, is memory for attention_backward, at least
  // attention_mask_floats (ops/attention_masks.h).
  virtual void attention(const AttentionShape& shape, Dropout dropout, Tensor q, Tensor k, Tensor v,
                         Tensor out, Tensor lse, Tensor mask = {}) = 0;
  // Whether attention() uses `mask`. If not, leave it absent to save memory.
  virtual bool keeps_attention_masks() const { return false; }
  // Whether a library computes the attention of long sequences. Its dropout masks differ: they
  // depend on the key, the step and the first sample of the call. Forward and backward masks agree.
  virtual bool library_attention() const { return false; }
  // dq, dk, dv overwritten, and the gradient of shape.bias if it is wanted. `mask` as attention()
  // left it, or absent if attention() had none.
  virtual void attention_backward(const AttentionShape& shape, Dropout dropout, Tensor q, Tensor k,
                                  Tensor v, Tensor out, Tensor lse, Tensor dout, Tensor dq,
                                  Tensor dk, Tensor dv, Tensor mask = {}) = 0;
  // The values of AttentionShape::bias: values (heads, 2 * span - 1), element (h, d) = table
  // (position_bucket(d - span + 1), h), with table (32, heads).
  virtual void position_bias(Tensor table, Tensor values) = 0;
  // dtable (32, heads) =, with `accumulate` +=, sums of dvalues (heads, 2T) as attention_backward
  // writes them: over the sequences in order, then over distances in order.
  virtual void position_bias_backward(Tensor dvalues, Segments keys, Tensor dtable,
                                      bool accumulate) = 0;

  // Scores by relative position (He et al., DeBERTa, 2021), the values of a PositionBias by pair:
  // scores (heads * Tq, span) = shape.scale * (q_i pk_x + k_j pq_x) for query i and key j of a
  // sequence, with x = rows.of(i - j). q and k f32 or bf16 both; pk and pq (W, heads*head_size).
  // One of pk and pq may be absent. Elements without a key are undefined.
  virtual void pair_scores(const AttentionShape& shape, RelativeRows rows, Tensor q, Tensor k,
                           Tensor pk, Tensor pq, Tensor scores) = 0;
  // dq and dk += gradients from dscores, as attention_backward writes them; dpk and dpq overwritten
  // by sums over the sequences in order.
  virtual void pair_scores_backward(const AttentionShape& shape, RelativeRows rows, Tensor dscores,
                                    Tensor q, Tensor k, Tensor pk, Tensor pq, Tensor dq, Tensor dk,
                                    Tensor dpk, Tensor dpq) = 0;

  // ---- encoder layer in inference ---------------------------------------------------------------
  // A layer in two operations, for backends on which that is faster than the single operations.
  // Other backends return false and implement neither.
  virtual bool has_layer(const LayerShape&) const { return false; }
  // context (Tq, H) in bf16 = attention of q, k, v = x * weight^T + bias with weight (3H, H), f32
  // or bf16, and bias (1, 3H). If `first` (Tq, H) is given, q is computed from its rows, not from
  // x's (T, H).
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
  // Each operation writes one loss per sample, losses (1, B), weighted but not yet divided by the
  // batch's denominator, and dlogits = `scale` * d(loss)/d(logits); `scale` is 1 / denominator of
  // the global batch, or 0. dlogits may be absent (evaluation), and may be the same as logits.

  // logits (B, C), labels (B) in [0, C); weights (1, C) may be absent (all 1). loss = w[y] * ((1 -
  // smoothing) * nll(y) + smoothing / C * sum_c nll(c)); torch weights the second term by w[c]
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
  // Adds gradients in a given order: one addition after the other, elementwise. All are (count),
  // contiguous, or rows of matrices (V, cols); afterwards those rows of `from` are zero.
  virtual void merge(std::span<const Addition> additions, int64_t count) = 0;
  virtual void merge_rows(std::span<const Addition> additions, RowList rows, int64_t cols) = 0;
  // sums[i] = sum of squares of x[i * block ...], in double, in backend memory. Elements that are
  // zero according to `sparse` need not be read; the bits are the same.
  virtual void block_square_sums(Tensor x, int64_t block, const SparseRows& sparse,
                                 double* sums) = 0;
  // sum = losses (1, B), each times its weight, added one after the other in double; weights (1, B)
  // may be absent (all 1). With `accumulate` sum +=. `sum` is backend memory.
  virtual void add_losses(Tensor losses, Tensor weights, bool accumulate, double* sum) = 0;
  // outcome = StepOutcome::of(loss, norm, max_norm), loss = tree_sum(losses) / denominator, norm =
  // sqrt(tree_sum(squares)) (core/numeric/tree_sum.h), in backend memory.
  virtual void step_outcome(const StepSums& sums, StepOutcome* outcome) = 0;
  // Decoupled weight decay (Loshchilov and Hutter, 2019) with bias correction, as
  // torch.optim.AdamW: p -= lr*wd*p; m = b1*m + (1-b1)*g; v = b2*v + (1-b2)*g^2; p -= lr/(1-b1^t) *
  // m / (sqrt(v)/sqrt(1-b2^t) + eps), with g = gradient_scale * gradient. All (1, N) contiguous.
  virtual void adamw(const AdamW& options, Tensor parameter, Tensor gradient, Tensor m,
                     Tensor v) = 0;
  // adamw for each of these non-overlapping parts of (1, N). Same bits, except that gradients of
  // parts with `cols` are undefined.
  virtual void adamw_parts(std::span<const AdamWPart> parts, Tensor parameter, Tensor gradient,
                           Tensor m, Tensor v) = 0;
  // adamw for these rows only; their gradient is then set to zero. All (V, H), contiguous. Same
  // bits as adamw on the whole.
  virtual void adamw_rows(const AdamW& options, RowList rows, Tensor parameter, Tensor gradient,
                          Tensor m, Tensor v) = 0;
  // Catches up the updates of rows without gradient: row rows[i] takes the last missed[i] of
  // `steps`, in order, with g = 0: p -= lr*wd*p; m = b1*m; v = b2*v; p -= lr/(1-b1^t) * m /
  // (sqrt(v)/ sqrt(1-b2^t) + eps). Same bits as adamw with a zero gradient at each step. All (V,
  // H), contiguous; `steps` is in host memory, missed (count), from 0 to steps.size(), in backend
  // memory.
  virtual void adamw_catch_up(std::span<const AdamW> steps, RowList rows, const int32_t* missed,
                              Tensor parameter, Tensor m, Tensor v) = 0;
};

// The CPU backend; kernels are chosen at run time (ops/cpu/isa.h).
// FINETUNE_ISA=avx2|avx512|avx512_bf16|amx forces a code path; Error(usage) if it is unknown or not
// available. With `compute` bf16 the operands of matrix products are rounded to bf16; sums and
// everything else are fp32.
std::unique_ptr<Backend> make_cpu_backend(DType compute = DType::f32);
// Whether this CPU multiplies bf16 natively, and whether that is faster than fp32.
bool cpu_multiplies_bf16();
bool cpu_multiplies_bf16_fast();
// Plain loops in double precision over float data, for tests.
std::unique_ptr<Backend> make_reference_backend();

}  // namespace finetune

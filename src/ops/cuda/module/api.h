// What the program asks of finetune_cuda.so: a table of plain C functions over plain structures.
// Shapes and formulas are those of ops/backend.h; the program has checked them before it calls.
//
// Pointers are device memory but where "host" is said. Calls are put on the context's stream and
// return at once, but `download`, `collect` and `synchronize`, which wait for it. One thread calls
// at a time. Every call returns kDone, or another Status with error() in words; a fault on the
// device may come to light in a later call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/numeric/dtype.h"
#include "core/numeric/philox.h"
#include "core/numeric/step_outcome.h"

namespace finetune::cuda {

enum Status : int { kDone = 0, kFailed = 1, kOutOfMemory = 2 };

// (rows, cols) elements, consecutive rows `stride` elements apart. data == nullptr: absent.
template <typename T>
struct MatrixOf {
  T* data;
  int64_t rows, cols, stride;

  constexpr T* row(int64_t r) const { return data + r * stride; }
};
using Matrix = MatrixOf<float>;
using Bf16Matrix = MatrixOf<bfloat16>;

// The same of floats or, in a context for bf16, of bfloat16.
struct AnyMatrix {
  void* data;
  int64_t rows, cols, stride;
  bool bf16;

  template <typename T>
  constexpr MatrixOf<T> as() const {
    return {static_cast<T*>(data), rows, cols, stride};
  }
};

struct RowNames {
  const uint32_t* position;
  const uint32_t* sample;
};

struct Segments {
  int64_t count, max_length;
  const int32_t* offsets;  // (count+1)
};

// A number, or each sample's own. Where it is 0 so are the loss and its gradient.
struct LossScale {
  float all;
  const float* each;  // (samples) or null

  constexpr float of(int64_t sample) const { return each ? each[sample] : all; }
};

struct AttentionShape {
  int64_t heads, head_size;
  float scale;
  Segments queries, keys;
  const uint32_t* samples;  // (queries.count)
};

// The rows of the embedding that each token takes. `order` lists the tokens sorted by id.
struct Tokens {
  int64_t count;
  const int32_t* ids;
  const uint32_t* positions;
  const int32_t* types;
  const int32_t* order;
};

struct RowList {
  const int32_t* rows;
  int64_t count;
};

// to += from
struct Addition {
  float* to;
  float* from;
};

// One AdamW step, worked out by the program (ops/cpu/kernels/optimizer.h has the same names).
struct AdamWStep {
  float scale;
  float beta1, rest1;
  float beta2, rest2;
  float decay;
  float rate, root, epsilon;
  const StepOutcome* outcome;  // if not null, `scale` is its, and it says whether to update at all
};

// Elements [begin, begin + count) of arenas.
struct AdamWPart {
  AdamWStep step;
  int64_t begin, count;
  // The module's own:
  int64_t first_block;  // of the launch
  bfloat16* rounded;    // where the new weights go in bf16 too, may be null
};

struct StepSums {
  const double* losses;  // (shards)
  int64_t shards;
  double denominator;
  const double* squares;  // (blocks)
  int64_t blocks;
  double max_norm;
  const double* wishes;  // (processes)
  int64_t processes;
};

// The order of ops/backend.h's Activation.
enum ActivationKind : int { kGelu, kGeluTanh, kRelu, kSilu, kTanh };

// Of a device, in bytes. What other programs and the driver take is neither free nor used.
struct MemoryUse {
  int64_t free, total;  // of the device
  int64_t used, peak;   // of this context: blocks, scratch memory, workspaces
};

// What is to become of work that may be replayed.
enum Replay : int {
  kReplayed,  // it is under way
  kCall,      // call it
  kRecord     // call it, then end_replay or, where it fails, give_up_replay
};

struct Context;  // one device: its stream, libraries and scratch memory

// Processes that each have a device of their own: comm/nccl.
struct Peers;
struct PeerId {
  char bytes[128];
};
// `count` floats to, from or for the process of this rank.
struct PeerPart {
  int rank;
  float* data;
  int64_t count;
};

struct Functions {
  // A device by its number, with matrix products in bf16 or fp32. `log` takes lines for the user.
  // Where it fails, `text` (of `size` bytes) says why.
  int (*create)(int device, bool bf16, void (*log)(const char* line), Context** context, char* text,
                size_t size);
  void (*destroy)(Context* context);
  const char* (*error)(const Context* context);        // of the last call that failed
  const char* (*device_name)(const Context* context);  // "NVIDIA H200"

  int (*allocate)(Context*, size_t bytes, void** memory);  // zeroed, 256-byte aligned
  int (*release)(Context*, void* memory);
  int (*memory_use)(Context*, MemoryUse* use);
  int (*upload)(Context*, void* to, const void* host, size_t bytes);  // `host` is free on return
  int (*download)(Context*, void* host, const void* from, size_t bytes);
  // `rows` rows of `width` bytes, `pitch` bytes apart
  int (*fill_zero)(Context*, void* memory, int64_t rows, size_t width, size_t pitch);
  int (*synchronize)(Context*);

  // A context for bf16 remembers w and bias rounded. They may be changed by upload, fill_zero,
  // adamw*, exchange and reduce alone, and by what is new in memory that was released.
  int (*linear)(Context*, AnyMatrix x, Matrix w, Matrix bias, AnyMatrix y);
  int (*linear_backward_input)(Context*, AnyMatrix dy, Matrix w, AnyMatrix dx, bool accumulate);
  int (*linear_backward_weight)(Context*, AnyMatrix dy, AnyMatrix x, Matrix dw, Matrix dbias,
                                bool accumulate);

  int (*activation)(Context*, int kind, AnyMatrix x, AnyMatrix y);
  int (*activation_backward)(Context*, int kind, AnyMatrix x, AnyMatrix dy, AnyMatrix dx,
                             AnyMatrix y);
  int (*dropout)(Context*, Matrix x, Dropout dropout, RowNames names, Matrix y);
  int (*add)(Context*, Matrix x, Matrix y);
  int (*gather_rows)(Context*, Matrix x, const int32_t* index, Matrix y);
  int (*scatter_rows_add)(Context*, Matrix dy, const int32_t* index, Matrix x);
  int (*scatter_rows)(Context*, Matrix x, const int32_t* index, Matrix y);

  int (*embed)(Context*, Tokens tokens, Matrix word, Matrix position, Matrix type, Matrix y);
  int (*embed_backward)(Context*, Matrix dy, Tokens tokens, Matrix dword, Matrix dposition,
                        Matrix dtype);

  int (*add_layer_norm)(Context*, Matrix x, Matrix residual, Dropout dropout, RowNames names,
                        Matrix gamma, Matrix beta, float epsilon, Matrix s, Matrix stats, Matrix y,
                        Bf16Matrix rounded);
  int (*add_layer_norm_backward)(Context*, Matrix dy, Matrix s, Matrix stats, Matrix gamma,
                                 Dropout dropout, RowNames names, Matrix ds, AnyMatrix dx,
                                 Matrix dgamma, Matrix dbeta, bool accumulate);

  int (*attention)(Context*, AttentionShape shape, Dropout dropout, AnyMatrix q, AnyMatrix k,
                   AnyMatrix v, AnyMatrix out, Matrix lse);
  int (*attention_backward)(Context*, AttentionShape shape, Dropout dropout, AnyMatrix q,
                            AnyMatrix k, AnyMatrix v, AnyMatrix out, Matrix lse, AnyMatrix dout,
                            AnyMatrix dq, AnyMatrix dk, AnyMatrix dv);

  // A label or position that is out of range makes its sample's loss NaN.
  int (*cross_entropy)(Context*, Matrix logits, const int32_t* labels, Matrix weights,
                       float smoothing, LossScale scale, Matrix losses, Matrix dlogits);
  int (*binary_cross_entropy)(Context*, Matrix logits, Matrix targets, Matrix weights,
                              LossScale scale, Matrix losses, Matrix dlogits);
  int (*squared_error)(Context*, Matrix logits, Matrix targets, LossScale scale, Matrix losses,
                       Matrix dlogits);
  int (*span_cross_entropy)(Context*, Matrix logits, Segments segments, const int32_t* starts,
                            const int32_t* ends, LossScale scale, Matrix losses, Matrix dlogits);

  int (*merge)(Context*, Addition addition, int64_t count);
  int (*merge_rows)(Context*, Addition addition, RowList rows, int64_t cols);
  // sums (ceil(x.cols / block))
  int (*block_square_sums)(Context*, Matrix x, int64_t block, double* sums);
  int (*adamw_rows)(Context*, AdamWStep step, RowList rows, Matrix parameter, Matrix gradient,
                    Matrix m, Matrix v);
  // steps (count): host
  int (*adamw_catch_up)(Context*, const AdamWStep* steps, int64_t count, RowList rows,
                        const int32_t* missed, Matrix parameter, Matrix m, Matrix v);

  int (*device_id)(Context*, char id[16]);  // host: of this GPU among all there are
  // A group of processes: one makes its id, then all connect, which waits for all. Peers live no
  // longer than the context. While they live whatever waits for the device fails if a peer does, or
  // if the device has waited `seconds` in an exchange (0: never): then no later call waits for the
  // device or gives memory back.
  int (*make_peer_id)(Context*, PeerId* id);
  int (*connect_peers)(Context*, const PeerId* id, int rank, int size, double seconds,
                       Peers** peers);
  void (*disconnect_peers)(Peers*);
  // All of it in flight together. Parts between two processes match in order. `bf16`: rounded on
  // the way, in all processes.
  int (*exchange)(Context*, Peers*, const PeerPart* out, int64_t out_count, const PeerPart* in,
                  int64_t in_count, bool bf16);
  // Each part is summed over all processes into that of the process it is for, in an order that is
  // not ours. All pass the same parts, but for their pointers.
  int (*reduce)(Context*, Peers*, const PeerPart* parts, int64_t count);
  // How long the stream has waited for exchanges, in all, as far as is known.
  int (*waited_for_peers)(Context*, Peers*, double* seconds);

  // Small copies for the host, first in, first out: `post` returns at once, `collect` waits for the
  // oldest one.
  int (*post)(Context*, const void* from, size_t bytes);
  int (*collect)(Context*, void* host, size_t bytes);
  int (*add_losses)(Context*, Matrix losses, bool accumulate, double* sum);
  int (*step_outcome)(Context*, StepSums sums, StepOutcome* outcome);
  // parts (count): host; the call writes what is the module's own
  int (*adamw_parts)(Context*, AdamWPart* parts, int64_t count, Matrix parameter, Matrix gradient,
                     Matrix m, Matrix v);

  // Backend::replay (graphs.h). Calls between begin_replay and end_replay are put on no stream, and
  // must not wait, upload or need memory that is not there. `done` false: nothing has come of it,
  // the work is to be called once more, as it is after give_up_replay, which says `why` to the
  // user.
  int (*begin_replay)(Context*, const int64_t* key, int64_t count, Replay* replay);
  int (*end_replay)(Context*, bool* done);
  int (*give_up_replay)(Context*, const char* why);

  // Peers have a stream of their own. `mark` names how far the context's has come; calls between
  // begin_beside and end_beside are put on the peers' stream, behind the last mark(place).
  int (*mark)(Context*, Peers*, int place);
  int (*begin_beside)(Context*, Peers*, int place);
  int (*end_beside)(Context*, Peers*);

  // "cuDNN 9.19.0": whose attention of long sequences it is (fused.h); "": the module's own
  const char* (*attention_library)(const Context* context);
};

}  // namespace finetune::cuda

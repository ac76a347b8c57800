// The interface of finetune_cuda.so: a table of plain C functions over plain structures. Operations
// are those of ops/operations.inc; shapes and formulas are in ops/backend.h, and the program checks
// them before it calls.
//
// Pointers are device memory unless marked "host". Calls are enqueued on the context's stream and
// return at once, except `download`, `finish_download` and `synchronize`, which wait for it. One
// thread calls at a time. Every call returns kDone, or another Status with a message in error(); a
// device fault may only show up in a later call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "core/numeric/dtype.h"
#include "core/numeric/philox.h"
#include "core/numeric/step_outcome.h"
#include "ops/operands.h"
#include "ops/scratch_sizes.h"
#include "ops/second_stream.h"

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

// The same of floats or, in a bf16 context, of bfloat16.
struct AnyMatrix {
  void* data;
  int64_t rows, cols, stride;
  bool bf16;

  template <typename T>
  constexpr MatrixOf<T> as() const {
    return {static_cast<T*>(data), rows, cols, stride};
  }
};

// One AdamW step, prepared by the program (ops/cpu/kernels/optimizer.h has the same names).
struct AdamWStep {
  float scale;
  float beta1, rest1;
  float beta2, rest2;
  float decay;
  float rate, root, epsilon;
  const StepOutcome* outcome;  // if not null, `scale` is read from it, and whether to update at all
};

// Elements [begin, begin + count) of arenas.
struct AdamWPart {
  AdamWStep step;
  int64_t begin, count;
};

// Bytes of a device. Memory of other programs and the driver is neither free nor used.
struct MemoryUse {
  int64_t free, total;  // of the device
  int64_t used, peak;   // of this context: blocks, scratch memory, workspaces
};

// How to run work that may be replayed.
enum Replay : int {
  kReplayed,  // it was enqueued
  kCall,      // call it
  kRecord     // call it, then end_replay or, on failure, give_up_replay
};

struct Context;  // one device: its stream, libraries and scratch memory

struct HostCopies;  // host_copies.cu

// A group of processes with a device each: comm/nccl.
struct Peers;
struct PeerId {
  char bytes[128];
};
// `count` floats sent to, received from or reduced for the process of this rank.
struct PeerPart {
  int rank;
  float* data;
  int64_t count;
};

// ---- operations ---------------------------------------------------------------------------
// The module's types for the names in ops/operations.inc. Other types are the program's own
// (ops/operands.h, core/numeric/).
using Tensor = Matrix;
using AnyTensor = AnyMatrix;
using Bf16Tensor = Bf16Matrix;
using AdamW = AdamWStep;

// A list in host memory.
template <typename T>
struct Items {
  const T* items;
  int64_t count;

  Items(std::span<const T> list) : items(list.data()), count(int64_t(list.size())) {}
  operator std::span<const T>() const { return {items, size_t(count)}; }
};

// The type of a parameter in the table: references become values, lists become Items.
template <typename T>
struct CrossedAs {
  using type = std::remove_cvref_t<T>;
};
template <typename T>
struct CrossedAs<std::span<const T>> {
  using type = Items<T>;
};
template <typename T>
using Crossed = typename CrossedAs<T>::type;

// The table's entry for an operation with the parameters of this function type.
template <typename Operation>
struct EntryOf;
template <typename... Parameters>
struct EntryOf<void(Parameters...)> {
  using type = int (*)(Context*, Crossed<Parameters>...);
};

// A hash of the list of operations.
constexpr uint32_t version_of_operations(uint32_t version) {
  constexpr const char* kRows[] = {
#define OPERATION(name, parameters, arguments) #name #parameters,
#include "ops/operations.inc"
  };
  for (const char* row : kRows) {  // FNV-1a
    for (; *row; ++row) version = (version ^ uint8_t(*row)) * 16777619u;
  }
  return version;
}

struct Functions {
  // Creates a context for a device by its number, with matrix products in bf16 or fp32. `log`
  // receives lines for the user. On failure `text` (of `size` bytes) says why.
  int (*create)(int device, bool bf16, void (*log)(const char* line), Context** context, char* text,
                size_t size);
  void (*destroy)(Context* context);
  const char* (*error)(const Context* context);        // of the last failed call
  const char* (*device_name)(const Context* context);  // "NVIDIA H200"

  int (*allocate)(Context*, size_t bytes, void** memory);  // zeroed, 256-byte aligned
  int (*release)(Context*, void* memory);
  // Host memory, pinned and zeroed.
  int (*allocate_on_host)(Context*, size_t bytes, void** memory);
  int (*release_on_host)(Context*, void* memory);
  int (*memory_use)(Context*, MemoryUse* use);
  // `host` may be reused on return
  int (*upload)(Context*, void* to, const void* host, size_t bytes);
  int (*download)(Context*, void* host, const void* from, size_t bytes);
  // `rows` rows of `width` bytes, `pitch` bytes apart
  int (*fill_zero)(Context*, void* memory, int64_t rows, size_t width, size_t pitch);
  int (*synchronize)(Context*);
  // From now on weights' gradients within these limits run on a stream of their own beside the
  // calls that follow, but for those that touch the same memory.
  int (*reserve_second_stream)(Context*, SecondStreamLimits most);
  int (*reserve_scratch)(Context*, ScratchSizes sizes);

  // The operations. A bf16 context keeps rounded copies of products' weights and biases: these may
  // be changed only by upload, fill_zero, adamw*, exchange and reduce, or by allocating released
  // memory again. A label or position out of range makes its sample's loss NaN.
#define OPERATION(name, parameters, arguments) EntryOf<void parameters>::type name;
#include "ops/operations.inc"

  int (*device_id)(Context*, char id[16]);  // host: identifies this GPU among all GPUs
  // A group of processes: one makes the id, then all connect, which is collective. Peers must not
  // outlive the context. While they exist, any wait for the device fails if a peer fails, or if the
  // device has waited `seconds` in an exchange (0: no limit). After that no call waits for the
  // device or releases memory.
  int (*make_peer_id)(Context*, PeerId* id);
  int (*connect_peers)(Context*, const PeerId* id, int rank, int size, double seconds,
                       Peers** peers);
  void (*disconnect_peers)(Peers*);
  // All parts are in flight together. Parts between two processes match in order. `bf16`: rounded
  // in transit, in all processes.
  int (*exchange)(Context*, Peers*, const PeerPart* out, int64_t out_count, const PeerPart* in,
                  int64_t in_count, bool bf16);
  // Sums each part over all processes, in an unspecified order, into the process of its rank. All
  // pass the same parts, with their own pointers.
  int (*reduce)(Context*, Peers*, const PeerPart* parts, int64_t count);
  // Total seconds that the stream has waited for exchanges, as far as known.
  int (*waited_for_peers)(Context*, Peers*, double* seconds);

  // Small copies to the host, first in, first out: `start_download` returns at once,
  // `finish_download` waits for the oldest one.
  int (*start_download)(Context*, const void* from, size_t bytes);
  int (*finish_download)(Context*, void* host, size_t bytes);

  // Backend::replay (graphs.h). Calls between begin_replay and end_replay are recorded, not
  // executed; they must not wait, upload or allocate. `done` false: recording failed and the work
  // must be called again, as after give_up_replay, which logs `why`.
  int (*begin_replay)(Context*, const int64_t* key, int64_t count, Replay* replay);
  int (*end_replay)(Context*, bool* done);
  int (*give_up_replay)(Context*, const char* why);

  // Peers have a stream of their own. `mark` records the progress of the context's stream; calls
  // between begin_beside and end_beside go to the peers' stream, behind the last mark(place).
  int (*mark)(Context*, Peers*, int place);
  int (*begin_beside)(Context*, Peers*, int place);
  int (*end_beside)(Context*, Peers*);

  // Copies on a separate stream, in order, each behind the current work of the context's stream.
  // wait_for_copy: later work of that stream waits for the last copy of this number. Copies must
  // not outlive the context.
  int (*make_host_copies)(Context*, int numbers, HostCopies** copies);
  void (*drop_host_copies)(HostCopies*);
  int (*store_copy)(Context*, HostCopies*, int number, void* host, const void* from, size_t bytes);
  int (*load_copy)(Context*, HostCopies*, int number, void* to, const void* host, size_t bytes);
  int (*wait_for_copy)(Context*, HostCopies*, int number);

  // The library for attention of long sequences, such as "cuDNN 9.19.0" (fused.h); "": the module's
  // own kernels
  const char* (*attention_library)(const Context* context);
};

}  // namespace finetune::cuda

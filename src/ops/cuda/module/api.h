// What the program asks of finetune_cuda.so: a table of plain C functions over plain structures.
// Operations are those of ops/operations.inc; shapes and formulas are in ops/backend.h, and the
// program has checked them before it calls.
//
// Pointers are device memory but where "host" is said. Calls are put on the context's stream and
// return at once, but `download`, `finish_download` and `synchronize`, which wait for it. One
// thread calls at a time. Every call returns kDone, or another Status with error() in words; a
// fault on the device may come to light in a later call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "core/numeric/dtype.h"
#include "core/numeric/philox.h"
#include "core/numeric/step_outcome.h"
#include "ops/operands.h"

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
};

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

struct HostCopies;  // host_copies.cu

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

// ---- operations ---------------------------------------------------------------------------
// What the words of ops/operations.inc are in the module. The others are the program's own
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

// A parameter as it crosses: what is referred to by its value, lists as Items.
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

// The table's entry for an operation whose parameters are those of the function type.
template <typename Operation>
struct EntryOf;
template <typename... Parameters>
struct EntryOf<void(Parameters...)> {
  using type = int (*)(Context*, Crossed<Parameters>...);
};

// A number that changes with the list of operations.
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
  // A device by its number, with matrix products in bf16 or fp32. `log` takes lines for the user.
  // Where it fails, `text` (of `size` bytes) says why.
  int (*create)(int device, bool bf16, void (*log)(const char* line), Context** context, char* text,
                size_t size);
  void (*destroy)(Context* context);
  const char* (*error)(const Context* context);        // of the last call that failed
  const char* (*device_name)(const Context* context);  // "NVIDIA H200"

  int (*allocate)(Context*, size_t bytes, void** memory);  // zeroed, 256-byte aligned
  int (*release)(Context*, void* memory);
  // Of the host, pinned, zeroed.
  int (*allocate_on_host)(Context*, size_t bytes, void** memory);
  int (*release_on_host)(Context*, void* memory);
  int (*memory_use)(Context*, MemoryUse* use);
  int (*upload)(Context*, void* to, const void* host, size_t bytes);  // `host` is free on return
  int (*download)(Context*, void* host, const void* from, size_t bytes);
  // `rows` rows of `width` bytes, `pitch` bytes apart
  int (*fill_zero)(Context*, void* memory, int64_t rows, size_t width, size_t pitch);
  int (*synchronize)(Context*);

  // The operations. A context for bf16 remembers weights of products and biases rounded: they may
  // be changed by upload, fill_zero, adamw*, exchange and reduce alone, and by what is new in
  // memory that was released. A label or position that is out of range makes its sample's loss NaN.
#define OPERATION(name, parameters, arguments) EntryOf<void parameters>::type name;
#include "ops/operations.inc"

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

  // Small copies for the host, first in, first out: `start_download` returns at once,
  // `finish_download` waits for the oldest one.
  int (*start_download)(Context*, const void* from, size_t bytes);
  int (*finish_download)(Context*, void* host, size_t bytes);

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

  // Copies beside the context's stream, in their order, each behind what the stream has so far.
  // wait_for_copy: what the stream gets from then on is behind the last copy of this number. They
  // live no longer than the context.
  int (*make_host_copies)(Context*, int numbers, HostCopies** copies);
  void (*drop_host_copies)(HostCopies*);
  int (*store_copy)(Context*, HostCopies*, int number, void* host, const void* from, size_t bytes);
  int (*load_copy)(Context*, HostCopies*, int number, void* to, const void* host, size_t bytes);
  int (*wait_for_copy)(Context*, HostCopies*, int number);

  // "cuDNN 9.19.0": whose attention of long sequences it is (fused.h); "": the module's own
  const char* (*attention_library)(const Context* context);
};

}  // namespace finetune::cuda

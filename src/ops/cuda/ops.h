// The functions behind the table of api.h, implemented by the module's files. Shapes and formulas
// of operations are those of ops/backend.h. All throw Failure.
#pragma once

#include "ops/cuda/module/context.h"

namespace finetune::cuda {

// memory.cu
void allocate(Context& context, size_t bytes, void** memory);
void release(Context& context, void* memory);
void allocate_on_host(Context& context, size_t bytes, void** memory);
void release_on_host(Context& context, void* memory);
void reserve_scratch(Context& context, ScratchSizes sizes);
void memory_use(Context& context, MemoryUse* use);
void upload(Context& context, void* to, const void* host, size_t bytes);
void download(Context& context, void* host, const void* from, size_t bytes);
void fill_zero(Context& context, void* memory, int64_t rows, size_t width, size_t pitch);
void synchronize(Context& context);
void start_download(Context& context, const void* from, size_t bytes);
void finish_download(Context& context, void* host, size_t bytes);

// second_stream.cu
void reserve_second_stream(Context& context, SecondStreamLimits most);

// The operations, each in the file that ops/operations.inc names above it.
#define FINETUNE_UNWRAPPED(...) __VA_ARGS__
#define OPERATION(name, parameters, arguments) \
  void name(Context& context, FINETUNE_UNWRAPPED parameters);
#include "ops/operations.inc"
#undef FINETUNE_UNWRAPPED

// graphs.cu
void begin_replay(Context& context, const int64_t* key, int64_t count, Replay* replay);
void end_replay(Context& context, bool* done);
void give_up_replay(Context& context, const char* why);

// host_copies.cu
void make_host_copies(Context& context, int numbers, HostCopies** copies);
void drop_host_copies(HostCopies* copies);
void store_copy(Context& context, HostCopies* copies, int number, void* host, const void* from,
                size_t bytes);
void load_copy(Context& context, HostCopies* copies, int number, void* to, const void* host,
               size_t bytes);
void wait_for_copy(Context& context, HostCopies* copies, int number);

// comm/nccl/peers.cu
void device_id(Context& context, char* id);
void make_peer_id(Context& context, PeerId* id);
void connect_peers(Context& context, const PeerId* id, int rank, int size, double seconds,
                   Peers** peers);
void disconnect_peers(Peers* peers);
void exchange(Context& context, Peers* peers, const PeerPart* out, int64_t out_count,
              const PeerPart* in, int64_t in_count, bool bf16);
void reduce(Context& context, Peers* peers, const PeerPart* parts, int64_t count);
void waited_for_peers(Context& context, Peers* peers, double* seconds);
void mark(Context& context, Peers* peers, int place);
void begin_beside(Context& context, Peers* peers, int place);
void end_beside(Context& context, Peers* peers);

}  // namespace finetune::cuda

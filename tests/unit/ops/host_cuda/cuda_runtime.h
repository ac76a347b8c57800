// The CUDA runtime as far as src/ops/cuda uses it, on the host.
// The module's kernels are compiled as C++ and run here block by block, so that tests see their
// arithmetic and their indices on machines without a GPU. Threads of a block change hands at
// barriers and shuffles alone, as fibers; a barrier that only some of them reach ends the test.
// Nothing is said of speed, of cuBLASLt's own kernels, or of what nvcc and a GPU make of the same
// source.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __launch_bounds__(...)

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline float4 make_float4(float x, float y, float z, float w) {
  return {x, y, z, w};
}
inline uint2 make_uint2(unsigned x, unsigned y) {
  return {x, y};
}
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
  return {x, y, z, w};
}

namespace host_cuda {
struct Stream;
struct Event;
struct Graph;
struct GraphExec;
}  // namespace host_cuda
using cudaStream_t = host_cuda::Stream*;
using cudaEvent_t = host_cuda::Event*;
using cudaGraph_t = host_cuda::Graph*;
using cudaGraphExec_t = host_cuda::GraphExec*;

// The state of the running fiber.
extern dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace host_cuda {

// Every fiber of the warp passes `mine`; returns all lanes' values, valid until the exchange after
// the next.
const uint64_t* exchange(uint64_t mine);
void block_barrier();
void run_grid(dim3 blocks, dim3 threads, const std::function<void()>& kernel);

template <typename T>
T from_lane(T value, unsigned lane) {
  static_assert(sizeof(T) <= 8);
  uint64_t mine = 0;
  std::memcpy(&mine, &value, sizeof value);
  std::memcpy(&value, exchange(mine) + lane % 32, sizeof value);
  return value;
}

// Device memory is accessible while one exists. Otherwise, if HOST_CUDA_PROTECT is set, access
// faults, because the program must not touch it.
class DeviceAccess {
 public:
  DeviceAccess();
  ~DeviceAccess();
};

// Puts work on a stream (host_streams.cpp). It is done when somebody waits for it, or before, as
// HOST_CUDA_STREAMS in the environment has it: "early" at once, "late" only then, else now so and
// now so; "priority": at once on streams of high priority, late on the others, so that the former
// are as far ahead as events let them. What is not ordered by an event or a wait is thus seen to go
// wrong. On a stream that is captured it becomes part of a graph, with the arguments that it has.
void enqueue(cudaStream_t stream, std::function<void()> work);
void finish_all_streams();
// From now on the work on this stream, and all later work, never completes: waiting for it hangs.
void get_stuck(cudaStream_t stream);
// For the report: counts a transfer between processes.
void count_transfer(cudaStream_t stream);
bool capturing();
// Kernels, and those of them that might start before the kernel before them had ended; here none
// does.
inline uint64_t launched = 0, started_early = 0;
// Reserves device memory that belongs to no block. False: there is too little.
bool take(size_t bytes);
void give_back(size_t bytes);

// The devices that HOST_CUDA_DEVICES in the environment names: their number (default 1), or "each"
// for one per process of mpirun.
int devices();
int device_number(int device);  // among all processes
// 10 * major + minor, of the list HOST_CUDA_CAPABILITIES ("75,90") or 90.
int capability(int device);

}  // namespace host_cuda

inline void __syncthreads() {
  host_cuda::block_barrier();
}
inline void __syncwarp() {
  host_cuda::exchange(0);
}
template <typename T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  return host_cuda::from_lane(value, (threadIdx.x % 32) ^ unsigned(mask));
}
inline unsigned __ballot_sync(unsigned, int predicate) {
  unsigned bits = 0;
  const uint64_t* all = host_cuda::exchange(predicate != 0);
  for (unsigned lane = 0; lane < 32; ++lane) bits |= unsigned(all[lane]) << lane;
  return bits;
}
inline int __popc(unsigned bits) {
  return __builtin_popcount(bits);
}
inline float __uint_as_float(unsigned bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
inline float normcdff(float x) {
  return float(0.5 * std::erfc(-double(x) * 0.70710678118654752440));
}
using std::isfinite;

enum cudaError_t {
  cudaSuccess,
  cudaErrorMemoryAllocation,
  cudaErrorInvalidValue,
  cudaErrorNotReady,
  cudaErrorStreamCaptureUnsupported,
  cudaErrorUnknown
};

namespace host_cuda {

// Tests ask for faults by the environment: HOST_CUDA_FAILS="NAME N", the Nth call of that name
// fails ("NAME N RANK": on that rank alone), HOST_CUDA_BREAKS="NAME N", so do it and whatever is
// called from then on. True: this call fails. Names are the functions', but "download" is a copy to
// the host.
bool fails(const char* name);

}  // namespace host_cuda
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal };
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
constexpr unsigned cudaStreamNonBlocking = 1, cudaEventDefault = 0, cudaEventDisableTiming = 2;
constexpr unsigned cudaEventRecordExternal = 1;

enum cudaDeviceAttr { cudaDevAttrComputeCapabilityMajor, cudaDevAttrComputeCapabilityMinor };

struct cudaDeviceProp {
  char name[256];
  char uuid[16];
  int major, minor, multiProcessorCount;
  size_t totalGlobalMem;
};
enum cudaLaunchAttributeID { cudaLaunchAttributeProgrammaticStreamSerialization };
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  struct {
    int programmaticStreamSerializationAllowed;
  } val;
};
struct cudaFuncAttributes {
  int ptxVersion;
};
template <typename Kernel>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, Kernel*) {
  attributes->ptxVersion = 90;
  return cudaSuccess;
}
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute* attrs;
  unsigned numAttrs;
};

cudaError_t cudaMalloc(void** memory, size_t bytes);  // writing behind its end faults
cudaError_t cudaFree(void* memory);
// The device's size is HOST_CUDA_MEMORY_MB in the environment, default 1 TiB.
cudaError_t cudaMemGetInfo(size_t* free, size_t* total);
cudaError_t cudaMallocHost(void** memory, size_t bytes);
cudaError_t cudaFreeHost(void* memory);
const char* cudaGetErrorString(cudaError_t error);

inline cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
inline cudaError_t cudaSetDevice(int) {
  return cudaSuccess;
}
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  std::strcpy(properties->name, device == 0 ? "kernels on the host" : "kernels on the host again");
  std::memset(properties->uuid, host_cuda::device_number(device), sizeof properties->uuid);
  properties->major = host_cuda::capability(device) / 10;
  properties->minor = host_cuda::capability(device) % 10;
  properties->multiProcessorCount = 1;
  properties->totalGlobalMem = size_t{1} << 40;
  return cudaSuccess;
}
inline cudaError_t cudaGetDeviceCount(int* count) {
  *count = host_cuda::devices();
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  const int capability = host_cuda::capability(device);
  *value = attribute == cudaDevAttrComputeCapabilityMajor ? capability / 10 : capability % 10;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority);
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);
// Between the recording calls.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
// External, and on a stream that is captured alone: each launch of the graph records the event
// where it stands between the graph's work.
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
// Fails if HOST_CUDA_NO_GRAPHS is set. With HOST_CUDA_GRAPH_MB each graph takes that much of the
// device's memory.
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                 unsigned long long flags = 0);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaMemset2DAsync(void* memory, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream);

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  const dim3 grid = config->gridDim, block = config->blockDim;
  // The limits of a GPU of compute capability 9.0.
  if (block.x > 1024 || block.x % 32 != 0 || grid.x > 0x7FFFFFFFu || grid.y > 65535 ||
      grid.z > 65535) {
    return cudaErrorInvalidValue;
  }
  if (host_cuda::fails("cudaLaunchKernelEx")) return cudaErrorUnknown;
  host_cuda::launched += 1;
  host_cuda::started_early += config->numAttrs;
  host_cuda::enqueue(
      config->stream,
      [=, values = std::tuple<Parameters...>(std::forward<Arguments>(arguments)...)] {
        const host_cuda::DeviceAccess access;
        host_cuda::run_grid(grid, block, [&] { std::apply(kernel, values); });
      });
  return cudaSuccess;
}

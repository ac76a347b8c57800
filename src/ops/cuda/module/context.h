// The module's device context: stream, cuBLASLt, scratch memory, errors, launching kernels.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/numeric/download_limits.h"
#include "ops/cuda/module/api.h"
#include "ops/cuda/module/programmatic.h"

namespace finetune::cuda {

// Thrown only inside the module: the table's functions turn it into a Status (functions.cu).
struct Failure : std::runtime_error {
  explicit Failure(const std::string& what, Status status_ = kFailed)
      : std::runtime_error(what), status(status_) {}
  Status status;
};

void check(cudaError_t error, const char* what);
void check(cublasStatus_t status, const char* what);
bool reached(cudaEvent_t event);  // by the device

// Device memory in which an operation keeps values between kernels. It grows to the largest need
// and stays allocated.
enum class Scratch { left, right, sums, weighted, mask, fused, steps, parts, wire, timed, count };

struct Context;
class Matmul;          // matmul.h
class RoundedWeights;  // rounded.h
class Graphs;          // graphs.h
class FusedAttention;  // fused.h
class SecondStream;    // second_stream.h

// Memory of the device, counted.
class DeviceMemory {
 public:
  ~DeviceMemory();
  void* allocate(size_t bytes, const char* what);
  void release(void* memory);          // null is ignored
  size_t size_of(void* memory) const;  // of a block, in bytes
  int64_t used() const { return used_; }
  int64_t peak() const { return peak_; }
  int64_t releases() const { return releases_; }
  void abandon() { blocks_.clear(); }  // nothing is released

 private:
  std::unordered_map<void*, size_t> blocks_;
  int64_t used_ = 0, peak_ = 0, releases_ = 0;
};

// Uploads. The host copies into pinned memory and continues; a separate stream copies that to a
// stage on the device beside the current work, and the work's stream copies it from there in order.
// Stages are used in turn: the host waits only if all are in use. Uploads of kLarge bytes and more,
// such as a model's weights, go from pinned memory straight into place, and the host waits for
// them.
class Staging {
 public:
  explicit Staging(DeviceMemory& memory);  // frees the stages, when they are no longer used
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  void upload(Context& context, void* to, const void* host, size_t bytes);

 private:
  static constexpr size_t kBytes = size_t{128} << 10;
  static constexpr int kStages = 64;
  static constexpr size_t kLarge = size_t{8} << 20, kLargePiece = size_t{4} << 20;
  static constexpr int kLargePieces = 4;
  void upload_large(Context& context, char* to, const char* host, size_t bytes);
  struct Stage {
    cudaEvent_t arrived = nullptr;  // pinned memory may be reused
    cudaEvent_t taken = nullptr;    // the stage may be reused
  };
  cudaStream_t copies_ = nullptr;
  char* pinned_ = nullptr;  // (kStages, kBytes), as device_
  char* device_ = nullptr;
  Stage stages_[kStages];
  int next_ = 0;
};

// Small copies to the host, first in, first out.
class DownloadQueue {
 public:
  DownloadQueue();
  ~DownloadQueue();
  DownloadQueue(const DownloadQueue&) = delete;
  DownloadQueue& operator=(const DownloadQueue&) = delete;
  void start_download(const void* from, size_t bytes, cudaStream_t stream);
  void finish_download(Context& context, void* host, size_t bytes);

 private:
  static constexpr unsigned kSlots = unsigned(kMostQueued);
  char* pinned_ = nullptr;  // (kSlots, kMostQueuedBytes)
  cudaEvent_t arrived_[kSlots] = {};
  unsigned started_ = 0, finished_ = 0;
};

struct Context {
  Context(int device, bool bf16, void (*log)(const char* line));
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Returns at least `bytes`, 256-byte aligned, contents undefined. Invalidates the previous call's
  // memory for the same use. The second stream has its own.
  void* scratch(Scratch use, size_t bytes);
  float* scratch_floats(Scratch use, int64_t count) {
    return static_cast<float*>(scratch(use, size_t(count) * sizeof(float)));
  }

  // As memory.allocate. Releases CUDA graphs, whose memory is not in any forecast, if memory runs
  // out.
  void* allocate(size_t bytes, const char* what);

  // Later work of the stream comes after the second stream's.
  void join();

  // Waits for the work enqueued before the event, or on both streams. All waits of the host go
  // through here, since work with other processes may never end.
  void wait(cudaEvent_t event, const char* what);
  void wait(const char* what);

  const int device;
  const bool bf16;  // operands of matrix products are rounded, activations may be
  void (*const log)(const char* line);
  bool starts_early = false;  // kernels may: FINETUNE_CUDA_LAUNCHES=programmatic
  std::string device_name;
  std::string attention_library;  // "": none
  std::string error;
  cudaStream_t stream = nullptr;
  DeviceMemory memory;
  std::unique_ptr<Staging> staging;
  std::unique_ptr<DownloadQueue> downloads;
  std::unique_ptr<Matmul> matmul;
  std::unique_ptr<RoundedWeights> rounded_weights;
  std::unique_ptr<Graphs> graphs;
  std::unique_ptr<FusedAttention> fused_attention;  // may be null
  std::unique_ptr<SecondStream> second;             // null: there is one stream
  // The device waits for a process that may never respond. From then on waiting for the device, or
  // releasing its memory, would hang, so the program ends without doing so.
  bool lost = false;
  std::function<void(cudaEvent_t)> wait_with_peers;  // set while there are peers

 private:
  struct Block {
    void* memory = nullptr;
    size_t bytes = 0;
  };
  Block scratch_[size_t(Scratch::count)];
  void check_wait(const char* what) const;
  cudaEvent_t end_ = nullptr;  // of the stream's work
};

constexpr int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// Launches kernel<<<blocks, threads>>>(arguments...) on the context's stream, unless there are no
// blocks. Kernels begin with wait_for_earlier_kernels().
template <typename... Parameters, typename... Arguments>
void launch(Context& context, dim3 blocks, int threads, void (*kernel)(Parameters...),
            Arguments&&... arguments) {
  if (blocks.x == 0 || blocks.y == 0 || blocks.z == 0) return;
  cudaLaunchConfig_t config = {};
  config.gridDim = blocks;
  config.blockDim = dim3(unsigned(threads));
  config.stream = context.stream;
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &early;
  config.numAttrs = context.starts_early ? 1 : 0;
  check(cudaLaunchKernelEx(&config, kernel, Parameters(std::forward<Arguments>(arguments))...),
        "kernel launch");
}

// The grid of a kernel over the elements of a (rows, cols) matrix: block x is a row, block y a
// piece of its columns; longer rows are walked in steps of the grid (warp.h, for_columns).
struct RowGrid {
  dim3 blocks;
  int threads;
};
inline RowGrid row_grid(int64_t rows, int64_t cols) {
  const int64_t pieces = std::clamp<int64_t>(divide_up(cols, 256), 1, 4096);
  const int64_t threads = std::clamp<int64_t>(divide_up(cols, pieces * 32) * 32, 32, 256);
  return {dim3(unsigned(rows), unsigned(pieces)), int(threads)};
}

}  // namespace finetune::cuda

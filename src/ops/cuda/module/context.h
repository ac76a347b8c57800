// One device as the module sees it: its stream, cuBLASLt, scratch memory; errors; launching.
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

namespace finetune::cuda {

// Thrown inside the module alone: the table's functions turn it into a Status (functions.cu).
struct Failure : std::runtime_error {
  explicit Failure(const std::string& what, Status status_ = kFailed)
      : std::runtime_error(what), status(status_) {}
  Status status;
};

void check(cudaError_t error, const char* what);
void check(cublasStatus_t status, const char* what);
bool reached(cudaEvent_t event);  // by the device

// Device memory for what an operation keeps from one kernel to the next. It grows to what the
// largest shapes need and stays.
enum class Scratch { left, right, sums, weighted, mask, fused, steps, parts, wire, count };

struct Context;
class Matmul;          // matmul.h
class RoundedWeights;  // rounded.h
class Graphs;          // graphs.h
class FusedAttention;  // fused.h

// Memory of the device, counted.
class DeviceMemory {
 public:
  ~DeviceMemory();
  void* allocate(size_t bytes, const char* what);
  void release(void* memory);          // null is nothing
  size_t size_of(void* memory) const;  // of a block, in bytes
  int64_t used() const { return used_; }
  int64_t peak() const { return peak_; }
  int64_t releases() const { return releases_; }
  void abandon() { blocks_.clear(); }  // nothing is given back

 private:
  std::unordered_map<void*, size_t> blocks_;
  int64_t used_ = 0, peak_ = 0, releases_ = 0;
};

// Uploads. The host copies into pinned memory and goes on; a stream of its own brings that to a
// stage on the device, beside the work in progress, and the work's stream takes it from there in
// its order. Stages are used in turn: the host waits only where it is that many uploads ahead.
class Staging {
 public:
  explicit Staging(DeviceMemory& memory);  // it frees the stages, when they are used no more
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  void upload(Context& context, void* to, const void* host, size_t bytes);

 private:
  static constexpr size_t kBytes = size_t{128} << 10;
  static constexpr int kStages = 64;
  struct Stage {
    cudaEvent_t arrived = nullptr;  // on the device: the pinned memory is free
    cudaEvent_t taken = nullptr;    // from there: the stage is free
  };
  cudaStream_t copies_ = nullptr;
  char* pinned_ = nullptr;  // (kStages, kBytes), as device_
  char* device_ = nullptr;
  Stage stages_[kStages];
  int next_ = 0;
};

// Small copies on their way to the host, first in, first out.
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

  // At least `bytes`, 256-byte aligned, undefined contents; the last call's for the same use is
  // void.
  void* scratch(Scratch use, size_t bytes);
  float* scratch_floats(Scratch use, int64_t count) {
    return static_cast<float*>(scratch(use, size_t(count) * sizeof(float)));
  }

  // As memory.allocate. CUDA graphs, whose memory nobody forecasts, make room where there is none.
  void* allocate(size_t bytes, const char* what);

  // Waits for what has been put on streams before the event, or on the stream. All waits of the
  // host are these: where other processes take part in the work, it may never be done.
  void wait(cudaEvent_t event, const char* what);
  void wait(const char* what);

  const int device;
  const bool bf16;  // operands of matrix products are rounded, activations may be
  void (*const log)(const char* line);
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
  // The device waits for a process that may never come: who waited for the device, as all do who
  // give something back to it, would never end. The program's end does without.
  bool lost = false;
  std::function<void(cudaEvent_t)> wait_with_peers;  // while there are any

 private:
  struct Block {
    void* memory = nullptr;
    size_t bytes = 0;
  };
  Block scratch_[size_t(Scratch::count)];
  void check_wait(const char* what) const;
  cudaEvent_t end_ = nullptr;  // of what is on the stream
};

constexpr int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// kernel<<<blocks, threads>>>(arguments...) on the context's stream. Nothing to do is no launch.
template <typename... Parameters, typename... Arguments>
void launch(Context& context, dim3 blocks, int threads, void (*kernel)(Parameters...),
            Arguments&&... arguments) {
  if (blocks.x == 0 || blocks.y == 0 || blocks.z == 0) return;
  cudaLaunchConfig_t config = {};
  config.gridDim = blocks;
  config.blockDim = dim3(unsigned(threads));
  config.stream = context.stream;
  check(cudaLaunchKernelEx(&config, kernel, Parameters(std::forward<Arguments>(arguments))...),
        "kernel launch");
}

// How a kernel over the elements of a (rows, cols) matrix is cut: block x is a row, block y a piece
// of its columns, walked in steps of the grid where there are more (warp.h, for_columns).
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

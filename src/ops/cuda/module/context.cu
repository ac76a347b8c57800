// The module's device context: memory, staged uploads, downloads, waits with a time limit.
#include <cstring>

#include "core/switches.h"
#include "ops/cuda/module/context.h"
#include "ops/cuda/attention/fused.h"
#include "ops/cuda/module/graphs.h"
#include "ops/cuda/module/second_stream.h"
#include "ops/cuda/kernels/matmul.h"
#include "ops/cuda/kernels/rounded.h"

namespace finetune::cuda {
namespace {

// Its attributes are those of all of the module's code.
__global__ void probe_kernel() {
  wait_for_earlier_kernels();
}

}  // namespace

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // clears a non-sticky error
  throw Failure(std::string(what) + ": " + cudaGetErrorString(error),
                error == cudaErrorMemoryAllocation ? kOutOfMemory : kFailed);
}

void check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Failure(std::string(what) + ": " + cublasLtGetStatusString(status),
                status == CUBLAS_STATUS_ALLOC_FAILED ? kOutOfMemory : kFailed);
}

bool reached(cudaEvent_t event) {
  const cudaError_t state = cudaEventQuery(event);
  if (state == cudaErrorNotReady) {
    cudaGetLastError();  // clears it, or the next call would report it
    return false;
  }
  check(state, "the device");
  return true;
}

DeviceMemory::~DeviceMemory() {
  for (const auto& [memory, bytes] : blocks_) cudaFree(memory);
}

void* DeviceMemory::allocate(size_t bytes, const char* what) {
  void* memory = nullptr;
  const cudaError_t error = cudaMalloc(&memory, bytes);
  if (error != cudaSuccess) {
    check(error, (std::string(what) + " of " + std::to_string((bytes >> 20) + 1) + " MiB").c_str());
  }
  blocks_[memory] = bytes;
  used_ += int64_t(bytes);
  peak_ = std::max(peak_, used_);
  return memory;
}

size_t DeviceMemory::size_of(void* memory) const {
  const auto found = blocks_.find(memory);
  if (found == blocks_.end()) throw Failure("device memory that this context has not allocated");
  return found->second;
}

void DeviceMemory::release(void* memory) {
  if (!memory) return;
  used_ -= int64_t(size_of(memory));
  blocks_.erase(memory);
  ++releases_;
  check(cudaFree(memory), "device memory");
}

Staging::Staging(DeviceMemory& memory) {
  void* pinned = nullptr;
  check(cudaStreamCreateWithFlags(&copies_, cudaStreamNonBlocking), "stream");
  check(cudaMallocHost(&pinned, kStages * kBytes), "pinned memory");
  pinned_ = static_cast<char*>(pinned);
  device_ = static_cast<char*>(memory.allocate(kStages * kBytes, "memory for uploads"));
  for (Stage& stage : stages_) {
    for (cudaEvent_t* event : {&stage.arrived, &stage.taken}) {
      check(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "event");
    }
  }
}

Staging::~Staging() {
  if (copies_) cudaStreamSynchronize(copies_);
  for (Stage& stage : stages_) {
    for (cudaEvent_t event : {stage.arrived, stage.taken}) {
      if (event) cudaEventDestroy(event);
    }
  }
  if (pinned_) cudaFreeHost(pinned_);
  if (copies_) cudaStreamDestroy(copies_);
}

// Earlier work may use the memory, so the copies wait for it, and later work for the copies.
void Staging::upload_large(Context& context, char* to, const char* host, size_t bytes) {
  struct Pinned {
    ~Pinned() { cudaFreeHost(memory); }
    void* memory = nullptr;
  } pinned;
  check(cudaMallocHost(&pinned.memory, kLargePieces * kLargePiece), "pinned memory");
  check(cudaEventRecord(stages_[0].taken, context.stream), "upload");
  check(cudaStreamWaitEvent(copies_, stages_[0].taken), "upload");
  for (size_t done = 0, piece = 0; done < bytes; done += kLargePiece, ++piece) {
    const cudaEvent_t arrived = stages_[piece % kLargePieces].arrived;
    char* from = static_cast<char*>(pinned.memory) + piece % kLargePieces * kLargePiece;
    const size_t count = std::min(kLargePiece, bytes - done);
    if (!reached(arrived)) context.wait(arrived, "upload");
    std::memcpy(from, host + done, count);
    check(cudaMemcpyAsync(to + done, from, count, cudaMemcpyHostToDevice, copies_), "upload");
    check(cudaEventRecord(arrived, copies_), "upload");
  }
  for (int piece = 0; piece < kLargePieces; ++piece) {
    check(cudaStreamWaitEvent(context.stream, stages_[piece].arrived), "upload");
    context.wait(stages_[piece].arrived, "upload");  // before the pinned memory goes
  }
}

void Staging::upload(Context& context, void* to, const void* host, size_t bytes) {
  if (bytes >= kLarge) {
    return upload_large(context, static_cast<char*>(to), static_cast<const char*>(host), bytes);
  }
  const cudaStream_t stream = context.stream;
  for (size_t done = 0; done < bytes; next_ = (next_ + 1) % kStages) {
    const Stage& stage = stages_[next_];
    char* pinned = pinned_ + size_t(next_) * kBytes;
    char* device = device_ + size_t(next_) * kBytes;
    const size_t count = std::min(kBytes, bytes - done);
    if (!reached(stage.arrived)) context.wait(stage.arrived, "upload");
    std::memcpy(pinned, static_cast<const char*>(host) + done, count);
    check(cudaStreamWaitEvent(copies_, stage.taken), "upload");
    check(cudaMemcpyAsync(device, pinned, count, cudaMemcpyHostToDevice, copies_), "upload");
    check(cudaEventRecord(stage.arrived, copies_), "upload");
    check(cudaStreamWaitEvent(stream, stage.arrived), "upload");
    check(cudaMemcpyAsync(static_cast<char*>(to) + done, device, count, cudaMemcpyDeviceToDevice,
                          stream),
          "upload");
    check(cudaEventRecord(stage.taken, stream), "upload");
    done += count;
  }
}

DownloadQueue::DownloadQueue() {
  void* pinned = nullptr;
  check(cudaMallocHost(&pinned, kSlots * kMostQueuedBytes), "pinned memory");
  pinned_ = static_cast<char*>(pinned);
  for (cudaEvent_t& event : arrived_) {
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "event");
  }
}

DownloadQueue::~DownloadQueue() {
  for (cudaEvent_t event : arrived_) {
    if (event) cudaEventDestroy(event);
  }
  if (pinned_) cudaFreeHost(pinned_);
}

void DownloadQueue::start_download(const void* from, size_t bytes, cudaStream_t stream) {
  if (bytes > kMostQueuedBytes || started_ - finished_ == kSlots)
    throw Failure("no slot for a copy");
  const unsigned slot = started_++ % kSlots;
  check(cudaMemcpyAsync(pinned_ + slot * kMostQueuedBytes, from, bytes, cudaMemcpyDeviceToHost,
                        stream),
        "download");
  check(cudaEventRecord(arrived_[slot], stream), "download");
}

void DownloadQueue::finish_download(Context& context, void* host, size_t bytes) {
  if (bytes > kMostQueuedBytes || started_ == finished_) throw Failure("no download to finish");
  const unsigned slot = finished_++ % kSlots;
  context.wait(arrived_[slot], "download");
  std::memcpy(host, pinned_ + slot * kMostQueuedBytes, bytes);
}

Context::Context(int device_, bool bf16_, void (*log_)(const char*))
    : device(device_), bf16(bf16_), log(log_) {
  check(cudaSetDevice(device), "the device");
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, device), "the device's properties");
  device_name = properties.name;
  if (kCudaLaunchesSwitch.is("programmatic") && properties.major >= 9) {
    // Code for an older GPU that the driver has translated does not wait.
    cudaFuncAttributes code = {};
    check(cudaFuncGetAttributes(&code, probe_kernel), "the device's code");
    starts_early = code.ptxVersion >= 90;
  }
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  check(cudaEventCreateWithFlags(&end_, cudaEventDisableTiming), "event");
  staging = std::make_unique<Staging>(memory);
  downloads = std::make_unique<DownloadQueue>();
  matmul = std::make_unique<Matmul>(memory, stream);
  rounded_weights = std::make_unique<RoundedWeights>(memory);
  graphs = std::make_unique<Graphs>();
  if (bf16) fused_attention = FusedAttention::make(log);
  if (fused_attention) attention_library = fused_attention->name();
}

Context::~Context() {
  cudaSetDevice(device);
  if (lost) {
    for (Block& block : scratch_) block = {};
    second.release();
    graphs.release();
    fused_attention.release();
    rounded_weights.release();
    matmul.release();
    staging.release();
    downloads.release();
    memory.abandon();
    return;
  }
  if (stream) cudaStreamSynchronize(stream);
  second.reset();
  graphs.reset();
  fused_attention.reset();
  rounded_weights.reset();
  matmul.reset();
  staging.reset();
  downloads.reset();
  if (end_) cudaEventDestroy(end_);
  if (stream) cudaStreamDestroy(stream);
}

void Context::check_wait(const char* what) const {
  if (lost) throw Failure("the device waits for another process, which has not responded");
  if (wait_with_peers && graphs->recording()) {
    throw Failure(std::string(what) + ": a wait in work that is to be replayed");
  }
}

void Context::wait(cudaEvent_t event, const char* what) {
  check_wait(what);
  if (wait_with_peers) return wait_with_peers(event);
  check(cudaEventSynchronize(event), what);
}

void Context::join() {
  if (second && !second->is_current()) second->join();
}

void Context::wait(const char* what) {
  check_wait(what);
  join();
  if (!wait_with_peers) return check(cudaStreamSynchronize(stream), what);
  check(cudaEventRecord(end_, stream), what);
  wait_with_peers(end_);
}

void* Context::allocate(size_t bytes, const char* what) {
  try {
    return memory.allocate(bytes, what);
  } catch (const Failure& failure) {
    if (failure.status != kOutOfMemory || !graphs || !graphs->give_back(*this)) throw;
  }
  return memory.allocate(bytes, what);
}

void* Context::scratch(Scratch use, size_t bytes) {
  // Both streams may share Scratch::timed: Matmul waits for what it has timed.
  const bool own = second && second->is_current() && use != Scratch::timed;
  if (own) return second->scratch(use, bytes);
  graphs->note_use(use);
  Block& block = scratch_[size_t(use)];
  if (bytes > block.bytes) {
    wait("scratch memory");  // kernels may still read the old memory
    memory.release(std::exchange(block.memory, nullptr));
    if (block.bytes > 0) graphs->scratch_moved(use);
    block.bytes = 0;
    block.memory = allocate(bytes, "scratch memory");
    block.bytes = bytes;
  }
  return block.memory;
}

}  // namespace finetune::cuda

// The CUDA backend's memory, copies, replay and description, through the module.
#include "ops/cuda/host/cuda_backend.h"

#include <string_view>

#include "core/log.h"
#include "core/switches.h"
#include "ops/cuda/host/cuda_module.h"

namespace finetune {

namespace {

int first_gpu = 0;

}  // namespace

void take_gpus_from(int first) {
  first_gpu = first;
}

std::unique_ptr<Backend> make_cuda_backend(DType compute, std::string* problem, int local_rank) {
  std::string why;
  const int devices = count_gpus(why);
  if (problem) *problem = why;
  if (devices == 0) return nullptr;
  return std::make_unique<CudaBackend>(*cuda_module().functions->functions, compute,
                                       (first_gpu + local_rank) % devices);
}

void CudaBackend::fail(const char* operation, int status) const {
  const char* text = functions_.error(context_.get());
  if (status == cuda::kOutOfMemory) {
    throw OutOfDeviceMemory(
        concat("the GPU has no memory left for ", operation, " (", text, "): use smaller batches"));
  }
  // The failure belongs to NCCL, not to the operation that waited.
  if (std::string_view(text).starts_with("NCCL")) throw device_error(text);
  throw device_error("the GPU failed at ", operation, ": ", text,
                     " (the fault may lie in an earlier operation; one process with "
                     "CUDA_LAUNCH_BLOCKING=1 in its environment finds it)");
}

CudaBackend::CudaBackend(const cuda::Functions& functions, DType compute, int device)
    : functions_(functions), compute_(compute) {
  FINETUNE_CHECK(compute == DType::f32 || compute == DType::bf16);
  cuda::Context* context = nullptr;
  char text[512];
  const int status = functions.create(
      device, compute == DType::bf16, [](const char* line) { log_line(line); }, &context, text,
      sizeof text);
  if (status != cuda::kDone)
    throw device_error("GPU ", device, " cannot be used: ", text, "; --device cpu does without");
  context_ = std::shared_ptr<cuda::Context>(context, functions.destroy);
}

bool CudaBackend::library_attention() const {
  return functions_.attention_library(context_.get())[0] != '\0';
}

// A library's masks are its own.
bool CudaBackend::keeps_attention_masks() const {
  return compute_ == DType::bf16 && kCudaMasksSwitch.is_on() && !library_attention();
}

bool CudaBackend::sums_columns() const {
  return kCudaSumsSwitch.is_on();
}

std::string CudaBackend::description() const {
  return concat("CUDA, ", functions_.device_name(context_.get()),
                compute_ == DType::bf16 ? ", bf16" : ", fp32",
                library_attention() ? ", attention by " : "",
                functions_.attention_library(context_.get()));
}

std::shared_ptr<void> CudaBackend::allocate(size_t bytes) {
  void* memory = nullptr;
  const int status = functions_.allocate(context_.get(), bytes, &memory);
  if (status == cuda::kOutOfMemory) {
    const DeviceMemory memory = device_memory();
    throw OutOfDeviceMemory(concat("the GPU has no ", (bytes >> 20) + 1,
                                   " MiB of memory left, only ", memory.free >> 20, " of ",
                                   memory.total >> 20, ": use smaller batches or a smaller model"));
  }
  if (status != cuda::kDone) fail("allocating memory", status);
  return {memory, [context = context_, release = functions_.release](void* p) {
            release(context.get(), p);  // may fail too, at the end of a program that failed
          }};
}

std::shared_ptr<void> CudaBackend::allocate_on_host(size_t bytes) {
  void* memory = nullptr;
  const int status = functions_.allocate_on_host(context_.get(), bytes, &memory);
  if (status == cuda::kOutOfMemory) {
    throw device_error("the host has no ", (bytes >> 20) + 1,
                       " MiB of memory for copies of the GPU: use smaller micro-batches");
  }
  if (status != cuda::kDone) fail("allocating memory of the host", status);
  return {memory, [context = context_, release = functions_.release_on_host](void* p) {
            release(context.get(), p);
          }};
}

void CudaBackend::upload(void* to, const void* host, size_t bytes) {
  call("upload", functions_.upload, to, host, bytes);
}

void CudaBackend::download(void* host, const void* from, size_t bytes) {
  call("download", functions_.download, host, from, bytes);
}

void CudaBackend::start_download(const void* from, size_t bytes) {
  call("download", functions_.start_download, from, bytes);
}

void CudaBackend::finish_download(void* host, size_t bytes) {
  call("download", functions_.finish_download, host, bytes);
}

void CudaBackend::replay(std::span<const int64_t> key, const std::function<void()>& work) {
  cuda::Replay replay = cuda::kCall;
  call("replaying work", functions_.begin_replay, key.data(), int64_t(key.size()), &replay);
  if (replay == cuda::kReplayed) return;
  if (replay == cuda::kCall) return work();
  bool done = false;
  try {
    work();  // is recorded instead of executed
    call("replaying work", functions_.end_replay, &done);
  } catch (const std::exception& error) {
    call("replaying work", functions_.give_up_replay, error.what());
  }
  if (!done) work();
}

bool CudaBackend::has_second_stream() const {
  return kCudaStreamsSwitch.is_on() && !kCudaStreamsSwitch.is("1");
}

void CudaBackend::reserve_second_stream(const SecondStreamLimits& most) {
  if (has_second_stream()) call("reserving memory", functions_.reserve_second_stream, most);
}

void CudaBackend::reserve_scratch(const ScratchSizes& sizes) {
  call("reserving memory", functions_.reserve_scratch, sizes);
}

void CudaBackend::fill_zero(Tensor x) {
  const size_t size = size_of(x.dtype);
  if (x.contiguous()) x = {x.data, x.dtype, 1, x.size(), x.size()};
  call("fill_zero", functions_.fill_zero, x.data, x.rows, size_t(x.cols) * size,
       size_t(x.stride) * size);
}

void CudaBackend::synchronize() {
  call("waiting for the GPU", functions_.synchronize);
}

DeviceMemory CudaBackend::device_memory() const {
  cuda::MemoryUse use;
  call("asking for its memory", functions_.memory_use, &use);
  return {use.free, use.total, use.used, use.peak};
}

}  // namespace finetune

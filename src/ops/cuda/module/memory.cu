// The module's memory operations: allocate, copy, fill, start and finish downloads.
#include <cstring>

#include "ops/cuda/module/graphs.h"
#include "ops/cuda/module/second_stream.h"
#include "ops/cuda/ops.h"
#include "ops/cuda/kernels/rounded.h"

namespace finetune::cuda {

void allocate(Context& context, size_t bytes, void** memory) {
  *memory = nullptr;
  bytes = std::max<size_t>(bytes, 1);
  *memory = context.allocate(bytes, "device memory");
  check(cudaMemsetAsync(*memory, 0, bytes, context.stream), "device memory");
}

void release(Context& context, void* memory) {
  if (context.lost) return;
  context.wait("device memory");  // kernels may still use it
  if (memory) context.rounded_weights->drop(memory, context.memory.size_of(memory));
  context.memory.release(memory);
}

void allocate_on_host(Context&, size_t bytes, void** memory) {
  *memory = nullptr;
  bytes = std::max<size_t>(bytes, 1);
  check(cudaMallocHost(memory, bytes), "pinned memory");
  std::memset(*memory, 0, bytes);
}

void release_on_host(Context& context, void* memory) {
  if (context.lost) return;
  context.wait("pinned memory");  // copies may still use it
  check(cudaFreeHost(memory), "pinned memory");
}

void reserve_scratch(Context& context, ScratchSizes sizes) {
  context.scratch(Scratch::left, size_t(sizes.left));
  context.scratch(Scratch::right, size_t(sizes.right));
  context.scratch(Scratch::sums, size_t(sizes.sums));
  context.scratch(Scratch::weighted, size_t(sizes.weighted));
}

void memory_use(Context& context, MemoryUse* use) {
  size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "device memory");
  *use = {int64_t(free), int64_t(total), context.memory.used(), context.memory.peak()};
}

void upload(Context& context, void* to, const void* host, size_t bytes) {
  if (context.graphs->recording()) throw Failure("an upload in work that is to be replayed");
  context.rounded_weights->forget(to, bytes);
  context.staging->upload(context, to, host, bytes);
}

void download(Context& context, void* host, const void* from, size_t bytes) {
  if (bytes == 0) return;
  // A copy to pageable memory may block inside the call, where the time limit is not checked.
  if (context.wait_with_peers) synchronize(context);
  check(cudaMemcpyAsync(host, from, bytes, cudaMemcpyDeviceToHost, context.stream), "download");
  synchronize(context);
}

void fill_zero(Context& context, void* memory, int64_t rows, size_t width, size_t pitch) {
  if (rows == 0 || width == 0) return;
  context.rounded_weights->forget(memory, size_t(rows) * pitch);
  if (context.second && !context.second->is_current()) {
    context.second->wait_for({memory, rows, int64_t(width), int64_t(pitch), 1});
  }
  if (width == pitch || rows == 1) {
    check(cudaMemsetAsync(memory, 0, size_t(rows) * width, context.stream), "fill_zero");
  } else {
    check(cudaMemset2DAsync(memory, pitch, 0, width, size_t(rows), context.stream), "fill_zero");
  }
}

void start_download(Context& context, const void* from, size_t bytes) {
  context.downloads->start_download(from, bytes, context.stream);
}

void finish_download(Context& context, void* host, size_t bytes) {
  context.downloads->finish_download(context, host, bytes);
}

void synchronize(Context& context) {
  context.wait("the device");
}

}  // namespace finetune::cuda

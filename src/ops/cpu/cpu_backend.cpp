// The CPU backend's memory, copies and description.
#include "ops/cpu/cpu_backend.h"

#include <sys/mman.h>

#include <cstring>

#include "ops/cpu/isa.h"
#include "ops/cpu/tasks.h"

namespace finetune {

CpuBackend::CpuBackend(DType compute) : compute_(compute) {
  FINETUNE_CHECK(compute == DType::f32 || compute == DType::bf16);
  select_isa();
}

std::string CpuBackend::description() const {
  const int count = threads();
  return concat("CPU, ", name_of(select_isa()), compute_ == DType::bf16 ? ", bf16, " : ", fp32, ",
                count, count == 1 ? " thread" : " threads");
}

std::string CpuBackend::code_path() const {
  return compute_ == DType::bf16 ? concat("CPU, ", name_of(select_isa()), ", bf16") : "CPU, fp32";
}

// The kernel provides zeroed pages at first touch, and large pages if it can.
std::shared_ptr<void> CpuBackend::allocate(size_t bytes) {
  if (bytes == 0) bytes = 1;
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED)
    throw device_error("no memory for ", bytes, " bytes (use smaller micro-batches)");
  madvise(data, bytes, MADV_HUGEPAGE);
  return {data, [bytes](void* p) { munmap(p, bytes); }};
}

void CpuBackend::upload(void* to, const void* host, size_t bytes) {
  if (bytes == 0) return;  // an empty list may be null
  packed_.written(to, bytes);
  std::memcpy(to, host, bytes);
}

void CpuBackend::download(void* host, const void* from, size_t bytes) {
  if (bytes > 0) std::memcpy(host, from, bytes);
}

void CpuBackend::fill_zero(Tensor x) {
  packed_.written(x);
  const size_t size = size_of(x.dtype);
  if (x.contiguous()) x = {x.data, x.dtype, 1, x.size(), x.size()};
  constexpr int64_t kPiece = 1 << 20;
  const int64_t pieces = (x.cols + kPiece - 1) / kPiece;
  cpu::for_tasks(x.rows * pieces, [&](int64_t i) {
    const int64_t begin = i % pieces * kPiece;
    const int64_t count = std::min(kPiece, x.cols - begin);
    std::memset(static_cast<char*>(x.data) + size_t(i / pieces * x.stride + begin) * size, 0,
                size_t(count) * size);
  });
}

bool cpu_multiplies_bf16() {
  return multiplies_bf16(select_isa());
}

bool cpu_multiplies_bf16_fast() {
  return multiplies_bf16_faster(select_isa());
}

std::unique_ptr<Backend> make_cpu_backend(DType compute) {
  return std::make_unique<CpuBackend>(compute);
}

}  // namespace finetune

// Simulated device memory on the host: guarded, counted, protected from the program.
#include <cuda_runtime.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

namespace {

struct Mapping {
  void* begin;
  size_t bytes;  // without the page behind the end
  size_t wanted;
  bool open;  // currently accessible
};
std::map<void*, Mapping>& mappings() {
  static std::map<void*, Mapping> all;
  return all;
}

size_t allocated = 0;

// HOST_CUDA_MEMORY_MB in the environment: of all devices, or "A B": of rank 0's and the others'.
size_t device_bytes() {
  const char* megabytes = std::getenv("HOST_CUDA_MEMORY_MB");
  if (!megabytes) return size_t{1} << 40;
  char* rest = nullptr;
  const size_t first = std::strtoull(megabytes, &rest, 10);
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  const bool other = *rest && rank && std::atoi(rank) > 0;
  return (other ? std::strtoull(rest, nullptr, 10) : first) << 20;
}

int accesses = 0;

bool protects() {
  static const bool wanted = std::getenv("HOST_CUDA_PROTECT") != nullptr;  // slow, so optional
  return wanted;
}

struct sigaction action_before;

// Memory is made accessible at first touch: doing so for all memory per kernel took longer than the
// kernels.
void open_touched(int, siginfo_t* fault, void*) {
  const char* touched = static_cast<const char*>(fault->si_addr);
  for (auto& [memory, mapping] : mappings()) {
    const char* begin = static_cast<const char*>(mapping.begin);
    if (accesses == 0 || mapping.open || touched < begin || touched >= begin + mapping.bytes)
      continue;
    mapping.open = mprotect(mapping.begin, mapping.bytes, PROT_READ | PROT_WRITE) == 0;
    if (mapping.open) return;
  }
  sigaction(SIGSEGV, &action_before, nullptr);  // the fault comes again
}

void catch_faults() {
  struct sigaction action = {};
  action.sa_sigaction = open_touched;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, &action_before);
}

void close_all() {
  for (auto& [memory, mapping] : mappings()) {
    if (mapping.open) mprotect(mapping.begin, mapping.bytes, PROT_NONE);
    mapping.open = false;
  }
}

}  // namespace

host_cuda::DeviceAccess::DeviceAccess() {
  ++accesses;
}

host_cuda::DeviceAccess::~DeviceAccess() {
  if (--accesses == 0 && protects()) close_all();
}

// The block ends where a page that nobody may touch begins, but for the 64 bytes of alignment that
// ops/backend.h promises. New memory is full of NaN.
cudaError_t cudaMalloc(void** memory, size_t bytes) {
  if (host_cuda::capturing()) return cudaErrorStreamCaptureUnsupported;
  if (host_cuda::fails("cudaMalloc")) return cudaErrorUnknown;
  if (bytes > device_bytes() - allocated) return cudaErrorMemoryAllocation;
  const size_t page = size_t(sysconf(_SC_PAGESIZE));
  const size_t size = (bytes + 63) / 64 * 64, whole = (size + page - 1) / page * page;
  void* begin =
      mmap(nullptr, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (begin == MAP_FAILED) return cudaErrorMemoryAllocation;
  madvise(begin, whole, MADV_HUGEPAGE);  // otherwise protecting it takes a fifth of the time
  mprotect(static_cast<char*>(begin) + whole, page, PROT_NONE);
  *memory = static_cast<char*>(begin) + whole - size;
  mappings()[*memory] = {begin, whole, bytes, true};
  if (static bool caught = false; protects() && !std::exchange(caught, true)) catch_faults();
  allocated += bytes;
  const host_cuda::DeviceAccess access;
  std::memset(*memory, 0xFF, size);
  return cudaSuccess;
}

cudaError_t cudaFree(void* memory) {
  if (!memory) return cudaSuccess;
  if (host_cuda::fails("cudaFree")) return cudaErrorUnknown;
  if (host_cuda::capturing()) return cudaErrorStreamCaptureUnsupported;
  host_cuda::finish_all_streams();
  const auto found = mappings().find(memory);
  if (found == mappings().end()) return cudaErrorInvalidValue;
  munmap(found->second.begin, found->second.bytes + size_t(sysconf(_SC_PAGESIZE)));
  allocated -= found->second.wanted;
  mappings().erase(found);
  return cudaSuccess;
}

bool host_cuda::take(size_t bytes) {
  if (bytes > device_bytes() - allocated) return false;
  allocated += bytes;
  return true;
}

void host_cuda::give_back(size_t bytes) {
  allocated -= bytes;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *total = device_bytes();
  *free = *total - allocated;
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** memory, size_t bytes) {
  if (host_cuda::fails("cudaMallocHost")) return cudaErrorMemoryAllocation;
  *memory = std::malloc(bytes);
  return *memory ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFreeHost(void* memory) {
  host_cuda::finish_all_streams();
  std::free(memory);
  return cudaSuccess;
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorNotReady:
      return "not ready";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case cudaErrorUnknown:
      break;
  }
  return "unknown error";
}

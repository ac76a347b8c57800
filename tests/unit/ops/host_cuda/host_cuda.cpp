// Runs CUDA kernels on the host: threads as fibers, barriers, guarded memory.
#include <cuda_runtime.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <vector>

dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace host_cuda {
namespace {

constexpr unsigned kLanes = 32;
constexpr size_t kStack = 64 << 10;

// Where a function goes on. The compiler's own: the library's setjmp and longjmp do more, which
// took a sixth of the tests' time.
using Place = void* [5];

// A function of its own: who keeps a place may not jump.
[[noreturn]] __attribute__((noinline)) void jump(Place& place) {
  __builtin_longjmp(place, 1);
}

// Made once; runs a warp's threads one after the other, until one of them has to wait: that one
// keeps it.
struct Fiber {
  std::unique_ptr<char[]> stack{new char[kStack]};
  ucontext_t start;
  Place place;
  bool started = false;
};

enum class State { at_exchange, at_barrier, done };

struct Thread {
  State state;
  Fiber* fiber;  // where it waits
};

// What lanes of a warp give each other. Two sets, since a lane may come to the next exchange before
// the slowest has read this one.
struct Warp {
  char values[2][kLanes * 8];
  unsigned exchanges[kLanes];
};

std::vector<std::unique_ptr<Fiber>> all_fibers;
std::vector<Fiber*> free_fibers;
std::vector<Thread> threads_of_block;
std::vector<Warp> warps;
const std::function<void()>* current_kernel = nullptr;
bool backwards = false;
unsigned current = 0;  // the thread that runs
Fiber* current_fiber = nullptr;
unsigned begun = 0;  // lanes of its warp
unsigned turn = 0;   // among the lanes that go on
ucontext_t scheduler_context;
Place scheduler;

[[noreturn]] void wrong(const char* what) {
  std::fprintf(stderr, "host_cuda: %s, thread %u of block (%u, %u, %u)\n", what, current,
               blockIdx.x, blockIdx.y, blockIdx.z);
  std::abort();
}

void run_as(unsigned thread) {
  current = thread;
  threadIdx = dim3(thread, 0, 0);
}

// Of the warp that runs.
void run_as_lane_in_turn(unsigned i) {
  run_as(current / kLanes * kLanes + (backwards ? kLanes - 1 - i : i));
}

// Hands over, to the next lane that goes on or to the scheduler, until one of them comes back to
// this thread.
void pause(State state) {
  Fiber& fiber = *current_fiber;
  threads_of_block[current] = {state, &fiber};
  if (__builtin_setjmp(fiber.place) != 0) return;
  if (++turn >= kLanes) jump(scheduler);
  run_as_lane_in_turn(turn);
  current_fiber = threads_of_block[current].fiber;
  jump(current_fiber->place);
}

void fiber_main() {
  for (;;) {
    Fiber& self = *current_fiber;
    while (begun < kLanes) {
      run_as_lane_in_turn(begun++);
      (*current_kernel)();
      threads_of_block[current].state = State::done;
    }
    free_fibers.push_back(&self);
    if (__builtin_setjmp(self.place) == 0) jump(scheduler);
  }
}

// Until a thread waits, or none that this fiber could run is left.
void resume(Fiber& fiber) {
  current_fiber = &fiber;
  if (__builtin_setjmp(scheduler) != 0) return;
  if (fiber.started) jump(fiber.place);
  fiber.started = true;
  getcontext(&fiber.start);
  fiber.start.uc_stack.ss_sp = fiber.stack.get();
  fiber.start.uc_stack.ss_size = kStack;
  fiber.start.uc_link = nullptr;
  makecontext(&fiber.start, fiber_main, 0);
  swapcontext(&scheduler_context, &fiber.start);
}

Fiber& free_fiber() {
  if (free_fibers.empty()) {
    all_fibers.push_back(std::make_unique<Fiber>());
    return *all_fibers.back();
  }
  Fiber& fiber = *free_fibers.back();
  free_fibers.pop_back();
  return fiber;
}

// Runs the threads of a warp until each is at the barrier or done.
void run_warp(unsigned first, bool begins) {
  const auto all_go_on = [] {
    for (turn = 0; turn < kLanes; ++turn) {
      run_as_lane_in_turn(turn);
      resume(*threads_of_block[current].fiber);
    }
  };
  run_as(first);
  if (begins) {
    turn = kLanes;
    for (begun = 0; begun < kLanes;) resume(free_fiber());
  } else {
    all_go_on();
  }
  for (;; all_go_on()) {
    unsigned at_exchange = 0;
    for (unsigned i = 0; i < kLanes; ++i) {
      at_exchange += threads_of_block[first + i].state == State::at_exchange;
    }
    if (at_exchange == 0) return;
    if (at_exchange < kLanes) wrong("a shuffle that only some lanes reach");
  }
}

void run_block(unsigned threads) {
  for (Warp& warp : warps) std::memset(warp.exchanges, 0, sizeof warp.exchanges);
  const unsigned warp_count = threads / kLanes;
  for (bool begins = true;; begins = false) {
    for (unsigned w = 0; w < warp_count; ++w) {
      run_warp(kLanes * (backwards ? warp_count - 1 - w : w), begins);
    }
    unsigned at_barrier = 0;
    for (unsigned i = 0; i < threads; ++i) {
      at_barrier += threads_of_block[i].state == State::at_barrier;
    }
    if (at_barrier == 0) return;
    // CUDA lets threads that have ended count as arrived; our kernels never need that.
    if (at_barrier != threads) wrong("a barrier that only some threads reach");
  }
}

}  // namespace

const char* exchange(const void* mine, size_t bytes) {
  const unsigned lane = current % kLanes;
  Warp& warp = warps[current / kLanes];
  char* values = warp.values[warp.exchanges[lane]++ % 2];
  std::memcpy(values + lane * 8, mine, bytes);
  pause(State::at_exchange);
  return values;
}

void block_barrier() {
  pause(State::at_barrier);
}

// Blocks and threads run forwards or backwards, as a launch's number has it: where a barrier is
// missing, two runs of an operation differ.
void run_grid(dim3 blocks, dim3 threads, const std::function<void()>& kernel) {
  static uint32_t launches = 0;
  backwards = (++launches * 0x9E3779B9u) >> 31;
  threads_of_block.resize(threads.x);
  warps.resize(threads.x / kLanes);
  current_kernel = &kernel;
  gridDim = blocks;
  blockDim = threads;
  const uint64_t count = uint64_t(blocks.x) * blocks.y * blocks.z;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t block = backwards ? count - 1 - i : i;
    blockIdx = dim3(unsigned(block % blocks.x), unsigned(block / blocks.x % blocks.y),
                    unsigned(block / blocks.x / blocks.y));
    run_block(threads.x);
  }
}

namespace {

bool one_for_each() {
  const char* devices = std::getenv("HOST_CUDA_DEVICES");
  return devices && std::strcmp(devices, "each") == 0;
}

}  // namespace

int devices() {
  const char* count = std::getenv("HOST_CUDA_DEVICES");
  return count && !one_for_each() ? std::atoi(count) : 1;
}

int device_number(int device) {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  return rank && one_for_each() ? std::atoi(rank) : device;
}

}  // namespace host_cuda

namespace {

struct Mapping {
  void* begin;
  size_t bytes;  // without the page behind the end
  size_t wanted;
  bool open;  // may be touched
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
  static const bool wanted = std::getenv("HOST_CUDA_PROTECT") != nullptr;  // it takes time
  return wanted;
}

struct sigaction action_before;

// Memory is opened as it is touched: to open all of it for each kernel took longer than the
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
  madvise(begin, whole, MADV_HUGEPAGE);  // to open and close it takes a fifth of the time
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

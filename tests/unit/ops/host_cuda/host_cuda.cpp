// Runs CUDA kernels on the host: threads as fibers, barriers, shuffles.
#include <cuda_runtime.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace host_cuda {
namespace {

constexpr unsigned kLanes = 32;
constexpr size_t kStack = 64 << 10;
constexpr size_t kHugePage = 2 << 20;

// The saved state of a suspended function.
struct Place {
  void* at;
  char* stack;
  void* frame;
};

// Goes on there, until somebody comes back to here. By hand: setjmp and longjmp, the compiler's own
// too, leave the processor with wrong guesses of where functions return to, which took a fifth of
// the tests' time.
[[gnu::always_inline]] inline void go_on(Place& here, const Place& there) {
  Place* from = &here;
  const Place* to = &there;
  asm volatile(
      "leaq 1f(%%rip), %%rax\n\t"
      "movq %%rax, 0(%0)\n\t"
      "movq %%rsp, 8(%0)\n\t"
      "movq %%rbp, 16(%0)\n\t"
      "movq 8(%1), %%rsp\n\t"
      "movq 16(%1), %%rbp\n\t"
      "jmpq *0(%1)\n\t"
      "1:"
      : "+D"(from), "+S"(to)
      :
      : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0",
        "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
        "xmm12", "xmm13", "xmm14", "xmm15", "cc", "memory");
}

// Made once; runs a warp's threads one after the other, until one must wait: that one keeps the
// fiber.
struct Fiber {
  Place place;
};

enum class State { at_exchange, at_barrier, done };

struct Thread {
  State state;
  Fiber* fiber;  // on which it waits
};

// Values that lanes of a warp exchange. Two sets, because a lane may reach the next exchange before
// the slowest has read this one.
struct Warp {
  uint64_t values[2][kLanes];
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
Place scheduler;

[[noreturn]] void wrong(const char* what) {
  std::fprintf(stderr, "host_cuda: %s, thread %u of block (%u, %u, %u)\n", what, current,
               blockIdx.x, blockIdx.y, blockIdx.z);
  std::abort();
}

// Fields are set one by one, here and in pause(): a copy of the whole would wait for its parts to
// be written, which took a tenth of the tests' time.
void run_as(unsigned thread) {
  current = thread;
  threadIdx.x = thread;
}

// Of the running warp.
void run_as_lane_in_turn(unsigned i) {
  run_as(current / kLanes * kLanes + (backwards ? kLanes - 1 - i : i));
}

// Switches to the next lane that can continue or to the scheduler, until one of them switches back.
void pause(State state) {
  Fiber& fiber = *current_fiber;
  Thread& thread = threads_of_block[current];
  thread.state = state;
  thread.fiber = &fiber;
  if (++turn >= kLanes) return go_on(fiber.place, scheduler);
  run_as_lane_in_turn(turn);
  current_fiber = threads_of_block[current].fiber;
  go_on(fiber.place, current_fiber->place);
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
    go_on(self.place, scheduler);
  }
}

// Runs until a thread waits or no thread is left for this fiber.
void resume(Fiber& fiber) {
  current_fiber = &fiber;
  go_on(scheduler, fiber.place);
}

// A warp's stacks lie in one page, and their ends in different lines of a cache: its fibers change
// hands all the time.
Fiber& new_fiber() {
  static char* page = nullptr;
  const size_t number = all_fibers.size() % kLanes;
  if (number == 0) {
    page = static_cast<char*>(std::aligned_alloc(kHugePage, kLanes * kStack));
    if (!page) throw std::bad_alloc();
    madvise(page, kLanes * kStack, MADV_HUGEPAGE);
  }
  constexpr size_t kPage = 4096, kLine = 64;
  // Simulates a call: the stack holds a return address that is never used.
  char* stack = page + (number + 1) * kStack - number * 13 * kLine % kPage - sizeof(void*);
  std::memset(stack, 0, sizeof(void*));
  all_fibers.push_back(std::make_unique<Fiber>());
  all_fibers.back()->place = {reinterpret_cast<void*>(fiber_main), stack, nullptr};
  return *all_fibers.back();
}

Fiber& free_fiber() {
  if (free_fibers.empty()) return new_fiber();
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

const uint64_t* exchange(uint64_t mine) {
  const unsigned lane = current % kLanes;
  Warp& warp = warps[current / kLanes];
  uint64_t* values = warp.values[warp.exchanges[lane]++ % 2];
  values[lane] = mine;
  pause(State::at_exchange);
  return values;
}

void block_barrier() {
  pause(State::at_barrier);
}

// Blocks and threads run forwards or backwards, depending on the launch's number: with a missing
// barrier two runs of an operation differ.
void run_grid(dim3 blocks, dim3 threads, const std::function<void()>& kernel) {
  static uint32_t launches = 0;
  backwards = (++launches * 0x9E3779B9u) >> 31;
  threads_of_block.resize(threads.x);
  warps.resize(threads.x / kLanes);
  current_kernel = &kernel;
  gridDim = blocks;
  blockDim = threads;
  threadIdx = dim3(0, 0, 0);
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

int capability(int device) {
  constexpr int kUsual = 90;
  const char* all = std::getenv("HOST_CUDA_CAPABILITIES");
  for (; all && device > 0; --device) {
    all = std::strchr(all, ',');
    if (all) ++all;
  }
  return all ? std::atoi(all) : kUsual;
}

int device_number(int device) {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  return rank && one_for_each() ? std::atoi(rank) : device;
}

}  // namespace host_cuda

// Events recorded inside CUDA graphs: what exchanges between devices rely on.
// No host can show it (comm/nccl/peers.cu): a graph records an event in its midst
// (cudaEventRecordExternal); a wait that is put on another stream behind a launch is for this
// launch's record, also where the launches before it have recorded the same event, and is over
// before the graph is. Without it buckets would leave with gradients of an earlier pass.
#include <cuda_runtime.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace {

constexpr int kLaunches = 3;
constexpr unsigned long long kBefore = 50'000'000, kAfter = 200'000'000;  // nanoseconds

struct Counters {
  int reached, ended;  // launches that have come to the event, to the end
  int seen_reached[kLaunches], seen_ended[kLaunches];  // by the other stream behind each wait
};

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::printf("%s\ntest cases: 1 | 0 passed | 1 failed\n", cudaGetErrorString(error));
  std::exit(1);
}

__global__ void spin(unsigned long long nanoseconds, int* count) {
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - start < nanoseconds);
  atomicAdd(count, 1);
}

__global__ void look(Counters* counters, int launch) {
  counters->seen_reached[launch] = atomicAdd(&counters->reached, 0);
  counters->seen_ended[launch] = atomicAdd(&counters->ended, 0);
}

}  // namespace

int main() {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  // Where there is a driver, one that is too old is no reason to skip.
  const bool no_driver =
      error == cudaErrorInsufficientDriver && access("/dev/nvidiactl", F_OK) != 0;
  if (error == cudaErrorNoDevice || no_driver || (error == cudaSuccess && devices == 0)) {
    std::printf("SKIPPED: no CUDA device\ntest cases: 1 | 1 passed | 0 failed\n");
    return 0;
  }
  check(error);
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  cudaStream_t stream, other;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  check(cudaStreamCreateWithPriority(&other, cudaStreamNonBlocking, greatest));
  cudaEvent_t event;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  Counters* counters = nullptr;
  check(cudaMalloc(&counters, sizeof *counters));
  // Kernels are loaded at their first launch, which may wait for all that runs.
  spin<<<1, 1, 0, stream>>>(0, &counters->reached);
  look<<<1, 1, 0, other>>>(counters, 0);
  check(cudaGetLastError());
  check(cudaDeviceSynchronize());
  check(cudaMemset(counters, 0, sizeof *counters));
  check(cudaDeviceSynchronize());

  cudaGraph_t graph;
  cudaGraphExec_t exec;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  spin<<<1, 1, 0, stream>>>(kBefore, &counters->reached);
  check(cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal));
  spin<<<1, 1, 0, stream>>>(kAfter, &counters->ended);
  check(cudaStreamEndCapture(stream, &graph));
  check(cudaGraphInstantiate(&exec, graph, 0));
  for (int launch = 0; launch < kLaunches; ++launch) {  // none waited for
    check(cudaGraphLaunch(exec, stream));
    check(cudaStreamWaitEvent(other, event, 0));
    look<<<1, 1, 0, other>>>(counters, launch);
    check(cudaGetLastError());
  }
  check(cudaDeviceSynchronize());
  Counters found;
  check(cudaMemcpy(&found, counters, sizeof found, cudaMemcpyDeviceToHost));
  bool right = found.reached == kLaunches && found.ended == kLaunches;
  for (int launch = 0; launch < kLaunches; ++launch) {
    std::printf("launch %d: %d at the event, %d ended\n", launch + 1, found.seen_reached[launch],
                found.seen_ended[launch]);
    right &= found.seen_reached[launch] == launch + 1 && found.seen_ended[launch] == launch;
  }
  std::printf("test cases: 1 | %d passed | %d failed\n", right, !right);
  return right ? 0 : 1;
}

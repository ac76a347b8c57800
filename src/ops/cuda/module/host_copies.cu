// Copies to and from pinned host memory on a separate stream.
#include <vector>

#include "ops/cuda/module/graphs.h"
#include "ops/cuda/ops.h"

namespace finetune::cuda {

// Each number has an event behind its last copy; an event never recorded counts as reached.
struct HostCopies {
  HostCopies(Context& of, int numbers) : context(of), done(size_t(numbers), nullptr) {}
  ~HostCopies();
  HostCopies(const HostCopies&) = delete;
  HostCopies& operator=(const HostCopies&) = delete;

  void make();
  void copy(int number, void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
            const char* what);
  cudaEvent_t& event_of(int number) {
    if (number < 0 || size_t(number) >= done.size()) throw Failure("no copy of this number");
    return done[size_t(number)];
  }

  Context& context;
  cudaStream_t stream = nullptr;
  cudaEvent_t begun = nullptr;  // current end of the context's stream
  std::vector<cudaEvent_t> done;
};

namespace {

void make_event(cudaEvent_t& event) {
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "event");
}

}  // namespace

void HostCopies::make() {
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  make_event(begun);
  for (cudaEvent_t& event : done) make_event(event);
}

// Pending copies wait for the context's stream, which may never end.
HostCopies::~HostCopies() {
  if (context.lost) return;
  cudaSetDevice(context.device);
  if (stream) cudaStreamSynchronize(stream);
  for (cudaEvent_t event : done) {
    if (event) cudaEventDestroy(event);
  }
  if (begun) cudaEventDestroy(begun);
  if (stream) cudaStreamDestroy(stream);
}

void HostCopies::copy(int number, void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                      const char* what) {
  if (context.graphs->recording()) throw Failure(std::string(what) + " in work to be replayed");
  cudaEvent_t& event = event_of(number);
  check(cudaEventRecord(begun, context.stream), what);
  check(cudaStreamWaitEvent(stream, begun), what);
  check(cudaMemcpyAsync(to, from, bytes, kind, stream), what);
  check(cudaEventRecord(event, stream), what);
}

void make_host_copies(Context& context, int numbers, HostCopies** copies) {
  auto made = std::make_unique<HostCopies>(context, numbers);
  made->make();
  *copies = made.release();
}

void drop_host_copies(HostCopies* copies) {
  delete copies;
}

void store_copy(Context&, HostCopies* copies, int number, void* host, const void* from, size_t bytes) {
  copies->copy(number, host, from, bytes, cudaMemcpyDeviceToHost, "a copy to the host");
}

void load_copy(Context&, HostCopies* copies, int number, void* to, const void* host, size_t bytes) {
  copies->copy(number, to, host, bytes, cudaMemcpyHostToDevice, "a copy from the host");
}

void wait_for_copy(Context& context, HostCopies* copies, int number) {
  check(cudaStreamWaitEvent(context.stream, copies->event_of(number)), "a copy");
}

}  // namespace finetune::cuda

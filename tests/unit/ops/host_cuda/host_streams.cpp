// Simulates streams and events as queues of work that one thread executes. Graphs are such work,
// kept for repetition.
#include "host_streams.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace host_cuda {

std::set<Stream*> streams;
Report report;

Report::~Report() {
  const char* path = std::getenv("HOST_CUDA_REPORT");
  if (!path) return;
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  std::FILE* file = std::fopen((std::string(path) + (rank ? rank : "")).c_str(), "w");
  if (!file) return;
  auto line = [&](const char* name, uint64_t count) {
    std::fprintf(file, "%s %llu\n", name, static_cast<unsigned long long>(count));
  };
  line("streams", streams);
  line("events", events);
  line("queries", queries);
  line("graphs", graphs);
  line("destroyed", destroyed);
  line("transfers", transfers);
  line("beside", beside);
  std::fclose(file);
}

namespace {

bool stuck = false;

[[noreturn]] void never() {
  for (;;) ::pause();
}

uint32_t draw() {
  static uint32_t turns = 0;
  const uint32_t bits = ++turns * 0x9E3779B9u;
  return (bits ^ (bits >> 15)) * 0x85EBCA77u >> 16;
}

// A stream is late or early for a while.
bool at_once(Stream& stream) {
  static const std::string mode = [] {
    const char* wanted = std::getenv("HOST_CUDA_STREAMS");
    return std::string(wanted ? wanted : "");
  }();
  if (stuck) return false;
  if (mode == "priority") return stream.high_priority;
  if (!mode.empty()) return mode == "early";
  if (stream.puts-- == 0) {
    const uint32_t bits = draw();
    stream.late = bits & 1;
    stream.puts = 1u << (bits / 2 % 10);
  }
  return !stream.late;
}

// Counts down to a call that must fail, on one rank or all.
struct Fault {
  std::string name;
  int64_t calls = 0;
  explicit Fault(const char* variable) {
    const char* wanted = std::getenv(variable);
    const char* space = wanted ? std::strchr(wanted, ' ') : nullptr;
    if (!space) return;
    char* rest = nullptr;
    calls = std::strtoll(space, &rest, 10);
    const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
    if (!*rest || (rank && std::atoi(rest) == std::atoi(rank))) name.assign(wanted, space);
  }
  bool comes(const char* called) { return name == called && --calls == 0; }
};

bool broken = false;

}  // namespace

void run(Stream& stream, uint64_t until) {
  // One for all: to close memory after each took longer than the work.
  const DeviceAccess access;
  while (stream.begun < until) {
    if (stuck) never();
    const std::function<void()> next = std::move(stream.work.front());
    stream.work.pop_front();
    ++stream.begun;
    next();
  }
}

// A broken device drops its pending work.
bool fails(const char* name) {
  static Fault once("HOST_CUDA_FAILS"), for_good("HOST_CUDA_BREAKS");
  if (for_good.comes(name)) {
    broken = true;
    for (Stream* stream : streams) {
      stream->work.clear();
      stream->begun = stream->put;
    }
  }
  return once.comes(name) || broken;
}

bool capturing() {
  for (const Stream* stream : streams) {
    if (stream->captured) return true;
  }
  return false;
}

void enqueue(cudaStream_t stream, std::function<void()> work) {
  if (broken) return;
  if (stream->captured) return stream->captured->add({stream->branch, std::move(work)});
  stream->work.push_back(std::move(work));
  ++stream->put;
  if (at_once(*stream)) run(*stream, stream->put);
}

void finish_all_streams() {
  for (Stream* stream : streams) run(*stream, stream->put);
}

void get_stuck(cudaStream_t stream) {
  if (stuck) return;
  run(*stream, stream->put);
  stuck = true;
}

void count_transfer(cudaStream_t own) {
  ++report.transfers;
  uint64_t left = 0;
  for (const Stream* stream : streams) {
    if (stream != own) left += stream->put - stream->begun;
  }
  report.beside += left > kLittle;
}

}  // namespace host_cuda

using host_cuda::enqueue;
using host_cuda::refused;

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new host_cuda::Stream;
  host_cuda::streams.insert(*stream);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  cudaStreamCreateWithFlags(stream, flags);
  (*stream)->high_priority = priority < 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  host_cuda::run(*stream, stream->put);
  host_cuda::streams.erase(stream);
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (host_cuda::fails("cudaStreamSynchronize")) return cudaErrorUnknown;
  if (refused(*stream)) return cudaErrorStreamCaptureUnsupported;
  host_cuda::report.streams += stream->begun < stream->put;
  host_cuda::run(*stream, stream->put);
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (stream->captured || event->in_capture) return host_cuda::wait_in_capture(*stream, *event);
  if (!event->stream) return cudaSuccess;
  enqueue(stream, [seen = *event] { host_cuda::run(*seen.stream, seen.place); });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new host_cuda::Event;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (stream->captured) {
    *event = {stream, stream->captured->lengths[stream->branch], stream->captured, true};
  } else {
    *event = {stream, stream->put};
  }
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (host_cuda::fails("cudaEventSynchronize")) return cudaErrorUnknown;
  if (!event->stream || event->stream->begun >= event->place) return cudaSuccess;
  ++host_cuda::report.events;
  host_cuda::run(*event->stream, event->place);
  return cudaSuccess;
}

// Not ready at the first query, but repeated queries succeed in the end.
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (!event->stream || event->stream->begun >= event->place) return cudaSuccess;
  if (host_cuda::stuck || !std::exchange(event->asked, true)) return cudaErrorNotReady;
  ++host_cuda::report.queries;
  host_cuda::run(*event->stream, event->place);
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  if (!from->stream || !to->stream) return cudaErrorInvalidValue;
  *milliseconds = std::chrono::duration<float, std::milli>(to->recorded - from->recorded).count();
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const char* name = kind == cudaMemcpyDeviceToHost ? "download" : "cudaMemcpyAsync";
  if (host_cuda::fails(name)) return cudaErrorUnknown;
  enqueue(stream, [=] {
    const host_cuda::DeviceAccess access;
    std::memcpy(to, from, bytes);
  });
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  return cudaMemset2DAsync(memory, bytes, value, bytes, 1, stream);
}

cudaError_t cudaMemset2DAsync(void* memory, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  enqueue(stream, [=] {
    const host_cuda::DeviceAccess access;
    for (size_t r = 0; r < height; ++r) {
      std::memset(static_cast<char*>(memory) + r * pitch, value, width);
    }
  });
  return cudaSuccess;
}

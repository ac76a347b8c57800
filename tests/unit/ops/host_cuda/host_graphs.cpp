// Simulates captures, and graphs of several branches: kept work that is repeated.
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "host_streams.h"

namespace host_cuda {

// An operation that is invalid on a captured stream.
bool refused(Stream& stream) {
  if (stream.captured) stream.captured->failed = true;
  return stream.captured != nullptr;
}

// On a captured stream: waits for an event of the same capture. A stream that is not captured joins
// the event's capture.
cudaError_t wait_in_capture(Stream& stream, const Event& event) {
  const std::shared_ptr<Graph> graph = event.captured.lock();
  if (!event.in_capture || !graph || (stream.captured && stream.captured != graph)) {
    refused(stream);
    return cudaErrorStreamCaptureUnsupported;
  }
  if (!stream.captured) {
    stream.captured = graph;
    stream.branch = graph->lengths.size();
    graph->lengths.push_back(0);
    graph->joined.push_back(0);
  }
  graph->add(
      {.branch = stream.branch, .other = event.stream->branch, .place = size_t(event.place)});
  return cudaSuccess;
}

}  // namespace host_cuda

using host_cuda::enqueue;
using host_cuda::refused;

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  if (flags != cudaEventRecordExternal || !stream->captured) return cudaErrorInvalidValue;
  stream->captured->add({.branch = stream->branch, .records = event});
  return cudaSuccess;
}

namespace {

size_t graph_bytes() {
  const char* megabytes = std::getenv("HOST_CUDA_GRAPH_MB");
  return megabytes ? std::strtoull(megabytes, nullptr, 10) << 20 : 0;
}

}  // namespace

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (host_cuda::fails("cudaStreamBeginCapture")) return cudaErrorUnknown;
  if (stream->captured) return cudaErrorInvalidValue;
  stream->captured = std::make_shared<host_cuda::Graph>();
  stream->branch = 0;
  stream->captured->lengths = stream->captured->joined = {0};
  return cudaSuccess;
}

// Every branch must have been waited for.
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  if (!stream->captured || stream->branch != 0) return cudaErrorInvalidValue;
  const std::shared_ptr<host_cuda::Graph> done = stream->captured;
  for (host_cuda::Stream* each : host_cuda::streams) {
    if (each->captured == done) each->captured = nullptr;
  }
  for (size_t branch = 1; branch < done->lengths.size(); ++branch) {
    done->failed |= done->joined[branch] < done->lengths[branch];
  }
  if (done->failed || std::getenv("HOST_CUDA_NO_GRAPHS")) return cudaErrorStreamCaptureUnsupported;
  *graph = new host_cuda::Graph(*done);
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  if (host_cuda::fails("cudaGraphInstantiate")) return cudaErrorMemoryAllocation;
  if (!host_cuda::take(graph_bytes())) return cudaErrorMemoryAllocation;
  *exec = new host_cuda::GraphExec{std::make_shared<const host_cuda::Graph>(*graph), {}};
  (*exec)->branches.resize(graph->lengths.size() - 1);
  for (cudaStream_t& branch : (*exec)->branches) cudaStreamCreateWithFlags(&branch, 0);
  return cudaSuccess;
}

// Each step becomes one piece of work of its branch's stream. Destroying a graph that is still
// running fails the test.
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  if (refused(*stream)) return cudaErrorStreamCaptureUnsupported;
  if (host_cuda::fails("cudaGraphLaunch")) return cudaErrorMemoryAllocation;
  ++host_cuda::report.graphs;
  std::vector<cudaStream_t> streams = {stream};
  streams.insert(streams.end(), exec->branches.begin(), exec->branches.end());
  std::vector<uint64_t> begin;
  for (const cudaStream_t each : streams) begin.push_back(each->put);
  for (size_t i = 0; i < exec->graph->steps.size(); ++i) {
    const host_cuda::Graph::Step& step = exec->graph->steps[i];
    const cudaStream_t own = streams[step.branch];
    const bool waits = step.other != host_cuda::Graph::kNone;
    const cudaStream_t other = waits ? streams[step.other] : nullptr;
    const uint64_t until = waits ? begin[step.other] + step.place : 0;
    enqueue(own, [graph = std::weak_ptr(exec->graph), i, other, until] {
      const auto whole = graph.lock();
      if (!whole) {
        std::fputs("host_cuda: a graph is destroyed before it is done\n", stderr);
        std::abort();
      }
      if (other) host_cuda::run(*other, until);
      whole->steps[i].work();
    });
    if (step.records) *step.records = {own, own->put};
  }
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  for (cudaStream_t branch : exec->branches) cudaStreamDestroy(branch);
  delete exec;
  host_cuda::give_back(graph_bytes());
  ++host_cuda::report.destroyed;
  return cudaSuccess;
}

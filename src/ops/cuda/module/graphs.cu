// Records, replays and retires CUDA graphs by key.
#include <cstdlib>
#include <string>

#include "core/switches.h"
#include "ops/cuda/module/graphs.h"
#include "ops/cuda/module/second_stream.h"
#include "ops/cuda/ops.h"
#include "ops/cuda/kernels/rounded.h"

namespace finetune::cuda {
namespace {

size_t most_graphs() {
  constexpr size_t kDefault = 256;
  const char* choice = kCudaGraphsSwitch.value();
  if (!choice) return kDefault;
  char* end = nullptr;
  const unsigned long long most = std::strtoull(choice, &end, 10);
  return end == choice ? kDefault : size_t(most);
}

void destroy(cudaGraphExec_t graph) {
  if (graph) cudaGraphExecDestroy(graph);
}

}  // namespace

Graphs::Graphs() : most_(most_graphs()), wanted_(most_ > 0) {}

Graphs::~Graphs() {
  while (!retired_.empty()) destroy_first_retired();
  for (const auto& [key, entry] : entries_) destroy(entry.graph);
}

void Graphs::destroy_first_retired() {
  const Retired first = retired_.front();
  retired_.pop_front();
  destroy(first.graph);
  if (first.done) cudaEventDestroy(first.done);
}

bool Graphs::clear(Context& context) {
  if (entries_.empty() && retired_.empty()) return false;
  context.wait("CUDA graphs");  // they may be running
  while (!retired_.empty()) destroy_first_retired();
  for (const auto& [key, entry] : entries_) destroy(entry.graph);
  entries_.clear();
  return true;
}

bool Graphs::give_back(Context& context) {
  return !recording_ && clear(context);
}

void Graphs::scratch_moved(Scratch use) {
  ++releases_;  // this one needs no others to be dropped
  for (auto& [key, entry] : entries_) {
    if (!entry.uses[size_t(use)]) continue;
    destroy(std::exchange(entry.graph, nullptr));
    entry.uses.reset();
  }
}

void Graphs::make_room(Context& context) {
  while (!retired_.empty()) {
    if (!reached(retired_.front().done)) break;
    destroy_first_retired();
  }
  if (entries_.size() < most_) return;
  const auto oldest = std::min_element(
      entries_.begin(), entries_.end(),
      [](const auto& a, const auto& b) { return a.second.last_use < b.second.last_use; });
  const cudaGraphExec_t graph = oldest->second.graph;
  entries_.erase(oldest);
  if (graph) retire(context, graph);
}

// The graph may be running. The host does not wait for it, since nothing here needs its memory.
void Graphs::retire(Context& context, cudaGraphExec_t graph) {
  cudaEvent_t& done = retired_.emplace_back(Retired{graph, nullptr}).done;
  check(cudaEventCreateWithFlags(&done, cudaEventDisableTiming), "CUDA graphs");
  check(cudaEventRecord(done, context.stream), "CUDA graphs");
}

Replay Graphs::begin(Context& context, Key key) {
  if (recording_) throw Failure("work that is to be replayed inside such work");
  if (!wanted_) return kCall;
  if (releases_ != context.memory.releases()) clear(context);
  releases_ = context.memory.releases();
  const auto found = entries_.find(key);
  if (found == entries_.end()) {
    make_room(context);
    entries_[std::move(key)] = {nullptr, ++uses_};
    return kCall;
  }
  found->second.last_use = ++uses_;
  try {
    return replay_or_record(context, found->second);
  } catch (const Failure& failure) {
    give_up(context, failure.what());
    return kCall;
  }
}

Replay Graphs::replay_or_record(Context& context, Entry& entry) {
  // A recording cannot wait for what was enqueued before it.
  context.join();
  // A recorded graph would not include the rounding of copies that are already up to date.
  context.rounded_weights->refresh(context);
  if (entry.graph) {
    check(cudaGraphLaunch(entry.graph, context.stream), "a CUDA graph");
    return kReplayed;
  }
  check(cudaStreamBeginCapture(context.stream, cudaStreamCaptureModeThreadLocal), "a CUDA graph");
  recording_ = &entry;
  return kRecord;
}

void Graphs::end(Context& context) {
  context.join();  // all branches end where the graph ends
  cudaGraph_t recorded = nullptr;
  Entry& entry = *std::exchange(recording_, nullptr);
  check(cudaStreamEndCapture(context.stream, &recorded), "a CUDA graph");
  const cudaError_t error = cudaGraphInstantiate(&entry.graph, recorded, 0);
  cudaGraphDestroy(recorded);
  check(error, "a CUDA graph");
  check(cudaGraphLaunch(entry.graph, context.stream), "a CUDA graph");
}

void Graphs::give_up(Context& context, const char* why) {
  if (std::exchange(recording_, nullptr)) {
    cudaGraph_t recorded = nullptr;
    cudaStreamEndCapture(context.stream, &recorded);
    if (recorded) cudaGraphDestroy(recorded);
    cudaGetLastError();  // clears the failed recording's error
    if (context.second) context.second->forget();
  }
  clear(context);
  if (!std::exchange(has_failed_, true)) {
    context.log((std::string("CUDA graphs are recorded again, since one failed: ") + why).c_str());
    return;
  }
  wanted_ = false;
  context.log((std::string("warning: going on without CUDA graphs: ") + why).c_str());
}

void begin_replay(Context& context, const int64_t* key, int64_t count, Replay* replay) {
  *replay = context.graphs->begin(context, {key, key + count});
}

void end_replay(Context& context, bool* done) {
  *done = false;
  context.graphs->end(context);
  *done = true;
}

void give_up_replay(Context& context, const char* why) {
  context.graphs->give_up(context, why);
}

}  // namespace finetune::cuda

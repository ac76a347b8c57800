// What the host's streams, events and graphs are made of.
#pragma once

#include <cuda_runtime.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <vector>

namespace host_cuda {

// Steps in the order in which they were captured, of several branches: the first is that of the
// stream whose capture began. A step does some work, waits until another branch has done its first
// `place` steps, or records an event.
struct Graph {
  static constexpr size_t kNone = ~size_t{0};
  struct Step {
    size_t branch;
    std::function<void()> work = [] {};
    size_t other = kNone, place = 0;  // waits for them
    cudaEvent_t records = nullptr;
  };
  std::vector<Step> steps;
  std::vector<size_t> lengths;  // of each branch
  std::vector<size_t> joined;   // how much of each branch the first one waits for
  bool failed = false;

  void add(Step step) {
    ++lengths[step.branch];
    if (step.branch == 0 && step.other != kNone) joined[step.other] = step.place;
    steps.push_back(std::move(step));
  }
};

struct GraphExec {
  std::shared_ptr<const Graph> graph;
  std::vector<Stream*> branches;  // all but the first
};

struct Stream {
  std::shared_ptr<Graph> captured;  // while it is, by its own branch there
  size_t branch = 0;
  std::deque<std::function<void()>> work;
  uint64_t put = 0, begun = 0;  // total counts
  bool high_priority = false;
  bool late = false;  // for the next puts
  uint32_t puts = 0;
};

// The end of the stream's work when the event was recorded, or of a branch while it is captured.
struct Event {
  Stream* stream = nullptr;
  uint64_t place = 0;
  std::weak_ptr<Graph> captured = {};
  bool in_capture = false;
  std::chrono::steady_clock::time_point recorded = std::chrono::steady_clock::now();
  bool asked = false;
};

extern std::set<Stream*> streams;

// Where HOST_CUDA_REPORT in the environment names a file, the program's end writes there how often
// it has waited for all that a stream had to do, how often for an event, how often it has asked for
// one until it came, how many graphs it has launched and destroyed, how many transfers between
// processes it has made, and how many of these while other streams had more than a little work left
// (kLittle). Of a process of mpirun the file's name ends in its rank.
constexpr uint64_t kLittle = 8;
struct Report {
  uint64_t streams = 0, events = 0, queries = 0, graphs = 0, destroyed = 0, transfers = 0,
           beside = 0;
  ~Report();
};
extern Report report;

void run(Stream& stream, uint64_t until);  // the first pieces of its work, by number
// An operation that is invalid on a captured stream makes its capture fail.
bool refused(Stream& stream);
// cudaStreamWaitEvent where the stream is captured, or the event was recorded in a capture.
cudaError_t wait_in_capture(Stream& stream, const Event& event);

}  // namespace host_cuda

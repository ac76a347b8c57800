// Replays repeated work as CUDA graphs: many launches for the price of one.
//
// The first call with a key runs the work, which allocates scratch memory, chooses algorithms and
// rounds weights; the second call records its launches; from the third call on they are replayed. A
// graph contains fixed pointers, grids and numbers: kernels read values that change from device
// memory, and the caller's key covers the rest (ops/backend.h, replay). Pointers become invalid
// when memory is released: then all graphs are dropped. When scratch memory grows, only the graphs
// that use it are, since each notes what it uses.
//
// FINETUNE_CUDA_GRAPHS=N limits the number of keys; 0 runs all work directly, with the same bits.
#pragma once

#include <bitset>
#include <deque>
#include <map>
#include <vector>

#include "ops/cuda/module/context.h"

namespace finetune::cuda {

class Graphs {
 public:
  Graphs();
  ~Graphs();  // the device must be idle
  Graphs(const Graphs&) = delete;
  Graphs& operator=(const Graphs&) = delete;

  // If a graph fails, the work is called directly: now, and from the second failure on for good.
  // Throws if the device fails.
  Replay begin(Context& context, std::vector<int64_t> key);
  // Launches the recorded graph.
  void end(Context& context);
  // Discards the recording and all graphs. They are recorded again, once; the second time recording
  // stops for good. Tells the user either way. Throws if the device fails.
  void give_up(Context& context, const char* why);
  // Frees all graphs to gain memory. Returns false if there are none.
  bool give_back(Context& context);
  bool recording() const { return recording_ != nullptr; }
  // What is recorded now, if anything is, uses this scratch memory.
  void note_use(Scratch use) {
    if (recording_) recording_->uses[size_t(use)] = true;
  }
  // This scratch memory has just been released, after a wait for the device: drops the graphs that
  // use it, and these alone.
  void scratch_moved(Scratch use);

 private:
  struct Entry {
    cudaGraphExec_t graph = nullptr;
    int64_t last_use = 0;
    std::bitset<size_t(Scratch::count)> uses = {};  // by the graph
  };
  using Key = std::vector<int64_t>;

  // A graph that is no longer used, kept until the device is done with it.
  struct Retired {
    cudaGraphExec_t graph;
    cudaEvent_t done;
  };

  bool clear(Context& context);  // false: there were none
  void make_room(Context& context);
  void retire(Context& context, cudaGraphExec_t graph);
  void destroy_first_retired();
  Replay replay_or_record(Context& context, Entry& entry);

  size_t most_;  // number of keys; beyond it the least recently used key is dropped
  bool wanted_;
  bool has_failed_ = false;
  std::map<Key, Entry> entries_;
  std::deque<Retired> retired_;  // in the order in which the device finishes them
  Entry* recording_ = nullptr;
  int64_t uses_ = 0, releases_ = 0;
};

}  // namespace finetune::cuda

// Work that comes again and again as CUDA graphs: many launches for the price of one.
//
// The first time a key comes its work is called, and leaves scratch memory, algorithms and rounded
// weights behind; the second time its launches are recorded; from the third time on they are
// replayed. A graph has pointers, grids and numbers as they were: what may differ is read from
// device memory by the kernels, and the caller's key tells apart what is not
// (ops/backend.h, replay). Pointers become invalid where memory is released, scratch memory that
// grows included: then all graphs go.
//
// FINETUNE_CUDA_GRAPHS=N in the environment: so many keys are known at once, 0: all work is called;
// with the same bits.
#pragma once

#include <deque>
#include <map>
#include <vector>

#include "ops/cuda/module/context.h"

namespace finetune::cuda {

class Graphs {
 public:
  Graphs();
  ~Graphs();  // the device is at rest
  Graphs(const Graphs&) = delete;
  Graphs& operator=(const Graphs&) = delete;

  // Where graphs fail nothing has come of it, and the work is called, without graphs from then on.
  // Throws if the device fails.
  Replay begin(Context& context, std::vector<int64_t> key);
  // Launches what was recorded.
  void end(Context& context);
  // What was recorded is thrown away, and nothing is recorded any more, which the user is told.
  // Throws if the device fails.
  void give_up(Context& context, const char* why);
  // Frees all of them, for who finds no memory left. False: there are none.
  bool give_back(Context& context);
  bool recording() const { return recording_ != nullptr; }

 private:
  struct Entry {
    cudaGraphExec_t graph = nullptr;
    int64_t last_use = 0;
  };
  using Key = std::vector<int64_t>;

  // A graph that is kept no longer, until the device is done with it.
  struct Retired {
    cudaGraphExec_t graph;
    cudaEvent_t done;
  };

  bool clear(Context& context);  // false: there were none
  void make_room(Context& context);
  void retire(Context& context, cudaGraphExec_t graph);
  void destroy_first_retired();
  Replay replay_or_record(Context& context, Entry& entry);

  size_t most_;  // beyond so many keys the one whose last use is longest ago goes
  bool wanted_;
  std::map<Key, Entry> entries_;
  std::deque<Retired> retired_;  // in the order in which the device comes to their end
  Entry* recording_ = nullptr;
  int64_t uses_ = 0, releases_ = 0;
};

}  // namespace finetune::cuda

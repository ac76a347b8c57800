// Work to do while a process waits: MPI moves data only while the process calls it.
#pragma once

#include <functional>
#include <vector>

namespace finetune {

class Background {
 public:
  // `step` does what is possible now and returns whether work is left.
  void add(std::function<bool()> step) { steps_.push_back(std::move(step)); }

  // Runs all steps and returns whether work is left. A waiting process calls it often, since its
  // peer may need that data before it can answer.
  bool advance() {
    if (steps_.empty()) return false;
    std::erase_if(steps_, [](const auto& step) { return !step(); });
    return !steps_.empty();
  }

 private:
  std::vector<std::function<bool()>> steps_;
};

}  // namespace finetune

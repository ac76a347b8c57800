// What goes on while a process does other things: MPI moves data only while somebody calls it.
#pragma once

#include <functional>
#include <vector>

namespace finetune {

class Background {
 public:
  // `step` does what can be done now, and says whether something is left.
  void add(std::function<bool()> step) { steps_.push_back(std::move(step)); }

  // Whether something is left. Whoever waits calls it often: another process may need what is on
  // its way before it can do what this one waits for.
  bool advance() {
    if (steps_.empty()) return false;
    std::erase_if(steps_, [](const auto& step) { return !step(); });
    return !steps_.empty();
  }

 private:
  std::vector<std::function<bool()>> steps_;
};

}  // namespace finetune

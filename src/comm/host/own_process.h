// State that all groups of this process share: liveness, waiting, group numbers.
#pragma once

#include <bitset>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "comm/host/control_block.h"
#include "comm/liveness.h"
#include "comm/placement.h"
#include "core/threads/spin.h"

namespace finetune {

// Work to do while a process waits: MPI moves data only while the process calls it.
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

// Seconds that a wait inside a host lasts beyond the time limit. The process that it waits for may
// itself wait for another host, and then reports the better cause first.
constexpr double kBeyondOthers = 4;

class OwnProcess {
 public:
  // names: see Liveness.
  OwnProcess(Control control, int local_rank, int host, std::vector<std::string> names)
      : slot_(control.slot(local_rank)),
        spin_(control.processes() <= host_cores()),
        liveness_(std::move(control), local_rank, host, std::move(names)) {
    groups_.set(0);
  }

  Liveness& liveness() { return liveness_; }
  const Liveness& liveness() const { return liveness_; }
  Background& background() { return background_; }
  ProcessSlot& slot() { return slot_; }
  // Group numbers in use: which counters of this process's slot are taken.
  std::bitset<kMostGroups>& groups() { return groups_; }

  // Spins for about a millisecond; returns whether done() became true.
  template <typename Done>
  bool spin_until(const Done& done) {
    return spin_.until([&] {
      background_.advance();
      return done();
    });
  }
  // Seconds of sleep between two checks.
  double slice() { return background_.advance() ? kBusySlice : kSlice; }

 private:
  static constexpr double kSlice = 0.1, kBusySlice = 50e-6;
  ProcessSlot& slot_;
  Spin spin_;
  Background background_;
  std::bitset<kMostGroups> groups_;
  Liveness liveness_;
};

}  // namespace finetune

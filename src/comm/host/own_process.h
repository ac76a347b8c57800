// What all groups of this process have in common: who watches, how it waits, numbers of groups.
#pragma once

#include <bitset>
#include <string>
#include <utility>
#include <vector>

#include "comm/background.h"
#include "comm/host/control_block.h"
#include "comm/liveness.h"
#include "comm/placement.h"
#include "core/threads/spin.h"

namespace finetune {

// A process of this host that others wait for may itself wait for another host, and gives up later
// than they: seconds.
constexpr double kBeyondOthers = 4;

class OwnProcess {
 public:
  // names: as Liveness.
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
  // Numbers of the groups that it is in: which counters of its slot are taken.
  std::bitset<kMostGroups>& groups() { return groups_; }

  // Looks for about a millisecond; whether what is looked for has come.
  template <typename Done>
  bool spin_until(const Done& done) {
    return spin_.until([&] {
      background_.advance();
      return done();
    });
  }
  // Of a sleep between two looks, in seconds.
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

// Ways from device to device along a layout's axes, where each process has a device of its own.
// All processes are connected once, and whatever goes between them is in one order: that in
// which each process asks for it. So no two exchanges ever hold a device against each other,
// provided that all processes ask for them in orders that fit together (device_messages.h).
#pragma once

#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "comm/communicator.h"
#include "distributed/layout/layout_groups.h"
#include "ops/backend.h"

namespace finetune {

// Some of the processes that are connected, under their numbers in a group.
class GroupPeers final : public DevicePeers {
 public:
  // ranks: the group's among the connected; places are counted from `first_place` on. `all`
  // must outlive this.
  GroupPeers(DevicePeers& all, std::vector<int> ranks, int first_place, bool is_all);

  // Without parts it makes the backend's other work wait for all that is beside it.
  void exchange(std::span<const Part> out, std::span<const Part> in, DType wire) override;
  void reduce(std::span<const Part> parts) override;  // where may_reduce() says so
  void mark(int place) override { all_.mark(first_place_ + place); }
  void beside(int place, const std::function<void()>& work) override {
    all_.beside(first_place_ + place, work);
  }
  double waited() override { return all_.waited(); }  // for any process

  bool may_reduce() const { return is_all_; }

 private:
  std::vector<Part> among_all(std::span<const Part> parts) const;

  DevicePeers& all_;
  std::vector<int> ranks_;
  int first_place_;
  bool is_all_;
};

class LayoutPeers {
 public:
  // Collective. `timeout`: seconds that one process waits for another (0: no end). Backend and
  // communicators must outlive this. Replicas alone:
  LayoutPeers(Backend& backend, Communicator& replicas, double timeout);
  // Stages and tensor ranks too. Where some of all processes share a device their messages go
  // through memory of the host, but replicas of one part that have each their own are connected.
  LayoutPeers(Backend& backend, const LayoutGroups& groups, double timeout);

  // Null: through memory of the host, or there are no others.
  GroupPeers* along(Axis axis) const { return axes_[size_t(axis)].get(); }

 private:
  std::unique_ptr<DevicePeers> all_;
  std::array<std::unique_ptr<GroupPeers>, 3> axes_;  // in the order of Axis
};

// For the log: how what stages and tensor ranks exchange goes.
std::string_view route_of(const LayoutPeers* peers);

}  // namespace finetune

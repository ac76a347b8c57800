// The communicators of a layout, and its device-to-device connections: of the run, and along each
// axis.
#pragma once

#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "comm/communicator.h"
#include "distributed/layout/layout.h"
#include "ops/backend.h"

namespace finetune {

class LayoutGroups {
 public:
  // Collective over `world`, which must outlive this and have layout.world() processes. An axis
  // that spans all processes uses the world's communicator, an axis of size 1 a solo one.
  LayoutGroups(Communicator& world, const Layout& layout);

  Communicator& world() const { return world_; }
  const Layout& layout() const { return layout_; }
  Coordinates place() const { return place_; }  // of this process

  Communicator& data() const { return along(Axis::data); }  // replicas of this part of the model
  Communicator& pipeline() const { return along(Axis::pipeline); }  // the stages; rank p is stage p
  Communicator& tensor() const { return along(Axis::tensor); }
  Communicator& along(Axis axis) const;

 private:
  Communicator& world_;
  Layout layout_;
  Coordinates place_;
  std::array<std::unique_ptr<Communicator>, 3> own_;  // in the order of Axis; null: the world's
};

// The first rank of each host, and size() last.
std::vector<int> first_ranks(const Communicator& comm);

// Device-to-device connections along a layout's axes, if each process has its own device. All
// processes are connected once, and all exchanges of a process run in the order of its calls.
// They cannot deadlock as long as all processes call in compatible orders (device_messages.h).
//
// A group of the connected processes, with ranks of its own.
class GroupPeers final : public DevicePeers {
 public:
  // ranks: the group's ranks among the connected processes. The group's places start at
  // `first_place`. `all` must outlive this.
  GroupPeers(DevicePeers& all, std::vector<int> ranks, int first_place, bool is_all);

  // Without parts, the backend's later work waits for all exchanges beside it.
  void exchange(std::span<const Part> out, std::span<const Part> in, DType wire) override;
  void reduce(std::span<const Part> parts) override;  // only if may_reduce()
  void mark(int place) override { all_.mark(first_place_ + place); }
  void beside(int place, const std::function<void()>& work) override {
    all_.beside(first_place_ + place, work);
  }
  double waited() override { return all_.waited(); }  // for all groups together

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
  // Collective; connects replicas only. `timeout`: seconds that a process waits for another; 0: no
  // limit. The backend and communicators must outlive this.
  LayoutPeers(Backend& backend, Communicator& replicas, double timeout);
  // Collective; connects stages and tensor ranks too. If any processes share a device, their
  // messages go through host memory; replicas of one part with a device each are still connected.
  LayoutPeers(Backend& backend, const LayoutGroups& groups, double timeout);

  // Null if the axis has one process, or goes through host memory.
  GroupPeers* along(Axis axis) const { return axes_[size_t(axis)].get(); }

 private:
  std::unique_ptr<DevicePeers> all_;
  std::array<std::unique_ptr<GroupPeers>, 3> axes_;  // in the order of Axis
};

// Collective. Returns null unless each process has its own device and the devices can be connected.
// `timeout`: seconds that a process waits for another; 0: no limit.
std::unique_ptr<DevicePeers> connect_devices(Backend& backend, Communicator& comm, double timeout);

// For the log: the route of exchanges between stages and tensor ranks.
std::string_view route_of(const LayoutPeers* peers);

}  // namespace finetune

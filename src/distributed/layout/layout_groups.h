// The communicators of a layout: the run's, and one along each axis.
#pragma once

#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "distributed/layout/layout.h"

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

}  // namespace finetune

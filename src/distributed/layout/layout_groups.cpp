// Splits the run's communicator along the axes of a layout.
#include "distributed/layout/layout_groups.h"

#include "core/error.h"

namespace finetune {

LayoutGroups::LayoutGroups(Communicator& world, const Layout& layout)
    : world_(world), layout_(layout), place_(layout.at(world.rank())) {
  FINETUNE_CHECK(layout.world() == world.size());
  for (Axis axis : kAxes) {
    if (layout.size(axis) == world.size()) continue;
    std::unique_ptr<Communicator>& own = own_[size_t(axis)];
    // The lowest rank of a group is its color.
    own = layout.size(axis) == 1 ? make_solo_communicator()
                                 : world.split(layout.group(axis, world.rank()).front());
    FINETUNE_CHECK(own->rank() == place_.of(axis));
  }
}

Communicator& LayoutGroups::along(Axis axis) const {
  const std::unique_ptr<Communicator>& own = own_[size_t(axis)];
  return own ? *own : world_;
}

std::vector<int> first_ranks(const Communicator& comm) {
  std::vector<int> first;
  for (int host = 0; host <= comm.hosts(); ++host) first.push_back(comm.first_rank(host));
  return first;
}

}  // namespace finetune

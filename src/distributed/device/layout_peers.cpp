// Connects the devices of a layout's processes and forms groups of them.
#include "distributed/device/layout_peers.h"

#include <numeric>
#include <utility>

#include "core/error.h"
#include "distributed/device/device_exchange.h"
#include "distributed/device/device_messages.h"

namespace finetune {

GroupPeers::GroupPeers(DevicePeers& all, std::vector<int> ranks, int first_place, bool is_all)
    : all_(all), ranks_(std::move(ranks)), first_place_(first_place), is_all_(is_all) {}

std::vector<DevicePeers::Part> GroupPeers::among_all(std::span<const Part> parts) const {
  std::vector<Part> out(parts.begin(), parts.end());
  for (Part& part : out) part.rank = ranks_.at(size_t(part.rank));
  return out;
}

void GroupPeers::exchange(std::span<const Part> out, std::span<const Part> in, DType wire) {
  all_.exchange(among_all(out), among_all(in), wire);
}

void GroupPeers::reduce(std::span<const Part> parts) {
  FINETUNE_CHECK(is_all_);
  all_.reduce(among_all(parts));
}

namespace {

std::vector<int> all_ranks(const Communicator& comm) {
  std::vector<int> ranks(size_t(comm.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

// Messages of pipelines use the first places, buckets of replicas the places behind them.
int first_place(Axis axis) {
  return axis == Axis::data ? DeviceMessages::kPlaces : 0;
}

}  // namespace

LayoutPeers::LayoutPeers(Backend& backend, Communicator& replicas, double timeout)
    : all_(connect_devices(backend, replicas, timeout)) {
  if (!all_) return;
  axes_[size_t(Axis::data)] =
      std::make_unique<GroupPeers>(*all_, all_ranks(replicas), first_place(Axis::data), true);
}

LayoutPeers::LayoutPeers(Backend& backend, const LayoutGroups& groups, double timeout)
    : all_(connect_devices(backend, groups.world(), timeout)) {
  const Layout& layout = groups.layout();
  const int rank = groups.world().rank();
  if (all_) {
    for (Axis axis : kAxes) {
      if (layout.size(axis) == 1) continue;
      axes_[size_t(axis)] = std::make_unique<GroupPeers>(
          *all_, layout.group(axis, rank), first_place(axis), layout.size(axis) == layout.world());
    }
    return;
  }
  if (layout.dp() == layout.world()) return;
  *this = LayoutPeers(backend, groups.data(), timeout);
}

std::string_view route_of(const LayoutPeers* peers) {
  const bool direct = peers && (peers->along(Axis::pipeline) || peers->along(Axis::tensor));
  return direct ? "from GPU to GPU (NCCL)" : "through memory of the host";
}

}  // namespace finetune

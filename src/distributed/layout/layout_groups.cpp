// Splits the run's communicator along a layout's axes, and connects the devices of each axis.
#include "distributed/layout/layout_groups.h"

#include <numeric>
#include <set>
#include <utility>

#include "core/error.h"
#include "distributed/device/device_messages.h"
#include "ops/device_peers.h"

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

namespace {

// The host times the device's waits when it waits for the device itself. Library calls need a timer
// of their own: the first exchange connects two processes, and a full driver queue blocks.
class TimedPeers final : public DevicePeers {
 public:
  TimedPeers(std::unique_ptr<DevicePeers> inner, Communicator& comm)
      : comm_(comm), inner_(std::move(inner)) {}
  ~TimedPeers() override {
    const LibraryCall call(comm_, "disconnecting the GPUs");
    inner_.reset();
  }

  void exchange(std::span<const Part> out, std::span<const Part> in, DType wire) override {
    const LibraryCall call(comm_, kExchange);
    inner_->exchange(out, in, wire);
  }
  void reduce(std::span<const Part> parts) override {
    const LibraryCall call(comm_, kExchange);
    inner_->reduce(parts);
  }
  void mark(int place) override { inner_->mark(place); }
  void beside(int place, const std::function<void()>& work) override {
    inner_->beside(place, work);
  }
  double waited() override { return inner_->waited(); }

 private:
  static constexpr const char* kExchange = "beginning an exchange between GPUs";

  Communicator& comm_;
  std::unique_ptr<DevicePeers> inner_;
};

}  // namespace

std::unique_ptr<DevicePeers> connect_devices(Backend& backend, Communicator& comm, double timeout) {
  if (comm.size() == 1 || backend.uses_host_memory()) return nullptr;
  constexpr size_t kId = 16;
  std::string mine = backend.device_id(), all(kId * size_t(comm.size()), '\0');
  mine.resize(kId);
  comm.all_gather(mine.data(), kId, all.data());
  std::set<std::string> devices;
  for (size_t i = 0; i < all.size(); i += kId) devices.insert(all.substr(i, kId));
  if (devices.size() < size_t(comm.size())) return nullptr;  // some processes share a device
  PeerId id{};
  if (comm.rank() == 0) id = backend.make_peer_id();
  comm.broadcast(id.data(), id.size(), 0);
  const LibraryCall call(comm, "connecting the GPUs");
  auto connected = backend.connect_peers(id, comm.rank(), comm.size(), timeout);
  if (!connected) return nullptr;
  return std::make_unique<TimedPeers>(std::move(connected), comm);
}

}  // namespace finetune

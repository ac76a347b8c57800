// Connects the devices of all processes if each process has its own, under the time limit.
#include <set>

#include "distributed/device/device_exchange.h"
#include "ops/device_peers.h"

namespace finetune {
namespace {

// The host times the device's waits when it waits for the device itself. Library calls need a timer
// of their own: the first exchange connects two processes, and a full driver queue blocks.
class TimedPeers final : public DevicePeers {
 public:
  TimedPeers(std::unique_ptr<DevicePeers> inner, Communicator& comm)
      : comm_(comm), inner_(std::move(inner)) {}
  ~TimedPeers() override {
    const LibraryCall call(comm_, "parting the GPUs");
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

// Exchanges between GPUs, through the module's functions.
#include <algorithm>
#include <iterator>

#include "ops/cuda/host/cuda_backend.h"

namespace finetune {

class CudaBackend::Connected final : public DevicePeers {
 public:
  Connected(CudaBackend& backend, cuda::Peers* peers)
      : backend_(backend), peers_(peers, backend.functions_.disconnect_peers) {}

  void exchange(std::span<const Part> out, std::span<const Part> in, DType wire) override {
    const auto sent = parts_of(out), received = parts_of(in);
    backend_.call("exchanging between GPUs", backend_.functions_.exchange, peers_.get(),
                  sent.data(), int64_t(sent.size()), received.data(), int64_t(received.size()),
                  wire == DType::bf16);
  }
  void reduce(std::span<const Part> parts) override {
    const auto all = parts_of(parts);
    backend_.call("summing between GPUs", backend_.functions_.reduce, peers_.get(), all.data(),
                  int64_t(all.size()));
  }
  void mark(int place) override {
    backend_.call("marking a place", backend_.functions_.mark, peers_.get(), place);
  }
  void beside(int place, const std::function<void()>& work) override {
    constexpr const char* kName = "work beside other work";
    backend_.call(kName, backend_.functions_.begin_beside, peers_.get(), place);
    try {
      work();
    } catch (...) {
      backend_.functions_.end_beside(backend_.context_.get(), peers_.get());
      throw;
    }
    backend_.call(kName, backend_.functions_.end_beside, peers_.get());
  }
  double waited() override {
    double seconds = 0;
    backend_.call("timing exchanges", backend_.functions_.waited_for_peers, peers_.get(), &seconds);
    return seconds;
  }

 private:
  static std::vector<cuda::PeerPart> parts_of(std::span<const Part> parts) {
    std::vector<cuda::PeerPart> out;
    for (const Part& p : parts) {
      if (p.count > 0) out.push_back({p.rank, p.data, p.count});
    }
    return out;
  }

  CudaBackend& backend_;
  std::unique_ptr<cuda::Peers, void (*)(cuda::Peers*)> peers_;
};

std::string CudaBackend::device_id() const {
  std::string id(16, '\0');
  call("asking for its number", functions_.device_id, id.data());
  return id;
}

PeerId CudaBackend::make_peer_id() {
  cuda::PeerId id;
  call("making a group of GPUs", functions_.make_peer_id, &id);
  PeerId out;
  std::copy(std::begin(id.bytes), std::end(id.bytes), out.begin());
  return out;
}

std::unique_ptr<DevicePeers> CudaBackend::connect_peers(const PeerId& id, int rank, int size,
                                                        double seconds) {
  cuda::PeerId copy;
  std::copy(id.begin(), id.end(), std::begin(copy.bytes));
  cuda::Peers* peers = nullptr;
  call("connecting the GPUs", functions_.connect_peers, &copy, rank, size, seconds, &peers);
  return std::make_unique<Connected>(*this, peers);
}

}  // namespace finetune

// Between processes that each have a GPU of their own: NCCL on the device's stream. A failure of a
// peer is seen while waiting; an operation whose peer never comes would else never end.
#include <nccl.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

#include "ops/cuda/ops.h"
#include "ops/cuda/rounded.h"

namespace finetune::cuda {

struct Peers {
  ncclComm_t comm = nullptr;
  cudaEvent_t done = nullptr;

  ~Peers() {
    if (comm) ncclCommDestroy(comm);
    if (done) cudaEventDestroy(done);
  }
};

namespace {

static_assert(sizeof(PeerId) == sizeof(ncclUniqueId));

constexpr auto kSpin = std::chrono::microseconds(200);  // before a wait sleeps between looks
constexpr int kSleep = 50;                              // microseconds

void check(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  throw Failure(std::string("NCCL, ") + what + ": " + ncclGetErrorString(result));
}

void check_peers(const Peers& peers) {
  ncclResult_t state = ncclSuccess;
  check(ncclCommGetAsyncError(peers.comm, &state), "its state");
  check(state, "another process or the way to it");
}

}  // namespace

void device_id(Context& context, char* id) {
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, context.device), "the device's properties");
  static_assert(sizeof properties.uuid == 16);
  std::memcpy(id, &properties.uuid, sizeof properties.uuid);
}

void make_peer_id(Context&, PeerId* id) {
  ncclUniqueId made;
  check(ncclGetUniqueId(&made), "an id for the processes");
  std::memcpy(id, &made, sizeof made);
}

void connect_peers(Context&, const PeerId* id, int rank, int size, Peers** peers) {
  auto connected = std::make_unique<Peers>();
  check(cudaEventCreateWithFlags(&connected->done, cudaEventDisableTiming), "event");
  ncclUniqueId unique;
  std::memcpy(&unique, id, sizeof unique);
  check(ncclCommInitRank(&connected->comm, size, unique, rank), "connecting the processes");
  *peers = connected.release();
}

void disconnect_peers(Peers* peers) {
  delete peers;
}

void exchange(Context& context, Peers* peers, const PeerPart* out, int64_t out_count,
              const PeerPart* in, int64_t in_count) {
  check(ncclGroupStart(), "exchange");
  for (const PeerPart* part = out; part < out + out_count; ++part) {
    check(ncclSend(part->data, size_t(part->count), ncclFloat32, part->rank, peers->comm,
                   context.stream),
          "sending");
  }
  for (const PeerPart* part = in; part < in + in_count; ++part) {
    context.rounded_weights->forget(part->data, size_t(part->count) * sizeof(float));
    check(ncclRecv(part->data, size_t(part->count), ncclFloat32, part->rank, peers->comm,
                   context.stream),
          "receiving");
  }
  check(ncclGroupEnd(), "exchange");
}

void reduce(Context& context, Peers* peers, const PeerPart* parts, int64_t count) {
  check(ncclGroupStart(), "sums");
  for (const PeerPart* part = parts; part < parts + count; ++part) {
    context.rounded_weights->forget(part->data, size_t(part->count) * sizeof(float));
    check(ncclReduce(part->data, part->data, size_t(part->count), ncclFloat32, ncclSum, part->rank,
                     peers->comm, context.stream),
          "sums");
  }
  check(ncclGroupEnd(), "sums");
}

void wait_for_peers(Context& context, Peers* peers, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  check(cudaEventRecord(peers->done, context.stream), "event");
  for (;;) {
    const cudaError_t state = cudaEventQuery(peers->done);
    if (state == cudaSuccess) return check_peers(*peers);
    if (state != cudaErrorNotReady) check(state, "the device");
    check_peers(*peers);
    const auto waited = Clock::now() - start;
    if (seconds > 0 && std::chrono::duration<double>(waited).count() > seconds) {
      throw Failure("NCCL: another process has not come within the time limit (--comm-timeout)");
    }
    if (waited > kSpin) usleep(kSleep);
  }
}

}  // namespace finetune::cuda

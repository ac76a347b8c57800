// Between processes that each have a GPU of their own: NCCL on a stream of its own, of high
// priority, so that what is ready goes out beside the context's work. All operations are on that
// one stream: their order is that of the calls, on every process. A failure of a peer is seen while
// waiting; an operation whose peer never comes would else never end.
#include <nccl.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <span>
#include <vector>

#include "ops/cuda/graphs.h"
#include "ops/cuda/ops.h"
#include "ops/cuda/rounded.h"

namespace finetune::cuda {

struct Peers {
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  cudaEvent_t ready = nullptr, passed = nullptr;  // from the context's stream to ours, and back
  cudaEvent_t done = nullptr;
  std::vector<cudaEvent_t> marks;  // by place
  cudaStream_t other = nullptr;    // the context's, while its operations go on ours
  Context& context;
  bool under_way = false;  // something whose peers may never come: nobody has waited for it

  explicit Peers(Context& context_) : context(context_) {
    int least = 0, greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "stream");
    check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest), "stream");
    for (cudaEvent_t* event : {&ready, &passed, &done}) make(event);
  }
  ~Peers() {
    if (under_way) {
      context.lost = true;
      return;
    }
    cudaStreamSynchronize(stream);
    if (comm) ncclCommDestroy(comm);
    for (cudaEvent_t event : {ready, passed, done}) cudaEventDestroy(event);
    for (cudaEvent_t event : marks) cudaEventDestroy(event);
    cudaStreamDestroy(stream);
  }
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  static void make(cudaEvent_t* event) {
    check(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "event");
  }
  cudaEvent_t mark(int place) {
    while (int(marks.size()) <= place) make(&marks.emplace_back());
    return marks[size_t(place)];
  }
};

namespace {

static_assert(sizeof(PeerId) == sizeof(ncclUniqueId));

constexpr auto kSpin = std::chrono::microseconds(200);  // before a wait sleeps between looks
constexpr int kSleep = 50;                              // microseconds

using cuda::check;
void check(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  throw Failure(std::string("NCCL, ") + what + ": " + ncclGetErrorString(result));
}

void check_peers(const Peers& peers) {
  ncclResult_t state = ncclSuccess;
  check(ncclCommGetAsyncError(peers.comm, &state), "its state");
  check(state, "another process or the way to it");
}

// While it lives the context's operations go on the peers' stream, behind what was on its own,
// which goes on behind them after end(). Where they go there anyway there is nothing to do.
class InOrder {
 public:
  InOrder(Context& context, Peers& peers) : context_(context), own_(context.stream), peers_(peers) {
    if (own_ == peers.stream) return;
    check(cudaEventRecord(peers.ready, own_), "event");
    check(cudaStreamWaitEvent(peers.stream, peers.ready), "event");
    context.stream = peers.stream;
  }
  ~InOrder() { context_.stream = own_; }
  void end() {
    if (own_ == peers_.stream) return;
    check(cudaEventRecord(peers_.passed, peers_.stream), "event");
    check(cudaStreamWaitEvent(own_, peers_.passed), "event");
  }

 private:
  Context& context_;
  const cudaStream_t own_;
  Peers& peers_;
};

void send(const Peers& peers, const PeerPart& part, const void* data, ncclDataType_t type) {
  check(ncclSend(data, size_t(part.count), type, part.rank, peers.comm, peers.stream), "sending");
}

void receive(const Peers& peers, const PeerPart& part, void* data, ncclDataType_t type) {
  check(ncclRecv(data, size_t(part.count), type, part.rank, peers.comm, peers.stream), "receiving");
}

// Parts one behind the other in bf16, as they are on the way.
class Wire {
 public:
  explicit Wire(bfloat16* at) : at_(at) {}
  Bf16Matrix next(const PeerPart& part) {
    const Bf16Matrix place{at_, 1, part.count, part.count};
    at_ += space(part);
    return place;
  }
  // Elements, so that each part is aligned for vectors.
  static int64_t space(const PeerPart& part) { return divide_up(part.count, 8) * 8; }

 private:
  bfloat16* at_;
};

Matrix floats_of(const PeerPart& part) {
  return {part.data, 1, part.count, part.count};
}

void exchange_rounded(Context& context, const Peers& peers, std::span<const PeerPart> out,
                      std::span<const PeerPart> in) {
  int64_t sent = 0, received = 0;
  for (const PeerPart& part : out) sent += Wire::space(part);
  for (const PeerPart& part : in) received += Wire::space(part);
  auto* wire = static_cast<bfloat16*>(
      context.scratch(Scratch::wire, size_t(sent + received) * sizeof(bfloat16)));
  Wire from(wire), rounded(wire), to(wire + sent), arrived(wire + sent);
  for (const PeerPart& part : out) round(context, floats_of(part), rounded.next(part));
  check(ncclGroupStart(), "exchange");
  for (const PeerPart& part : out) send(peers, part, from.next(part).data, ncclBfloat16);
  for (const PeerPart& part : in) receive(peers, part, to.next(part).data, ncclBfloat16);
  check(ncclGroupEnd(), "exchange");
  for (const PeerPart& part : in) widen(context, arrived.next(part), floats_of(part));
}

void wait(Context& context, Peers& peers, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  check(cudaEventRecord(peers.passed, peers.stream), "event");
  check(cudaStreamWaitEvent(context.stream, peers.passed), "event");
  check(cudaEventRecord(peers.done, context.stream), "event");
  for (;;) {
    const cudaError_t state = cudaEventQuery(peers.done);
    if (state == cudaSuccess) return check_peers(peers);
    if (state != cudaErrorNotReady) check(state, "the device");
    check_peers(peers);
    const auto waited = Clock::now() - start;
    if (seconds > 0 && std::chrono::duration<double>(waited).count() > seconds) {
      throw Failure("NCCL: another process has not come within the time limit (--comm-timeout)");
    }
    if (waited > kSpin) usleep(kSleep);
  }
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

void connect_peers(Context& context, const PeerId* id, int rank, int size, Peers** peers) {
  auto connected = std::make_unique<Peers>(context);
  ncclUniqueId unique;
  std::memcpy(&unique, id, sizeof unique);
  check(ncclCommInitRank(&connected->comm, size, unique, rank), "connecting the processes");
  *peers = connected.release();
}

void disconnect_peers(Peers* peers) {
  delete peers;
}

void exchange(Context& context, Peers* peers, const PeerPart* out, int64_t out_count,
              const PeerPart* in, int64_t in_count, bool bf16) {
  const std::span<const PeerPart> sent(out, size_t(out_count)), received(in, size_t(in_count));
  for (const PeerPart& part : received) {
    context.rounded_weights->forget(part.data, size_t(part.count) * sizeof(float));
  }
  peers->under_way = true;
  InOrder order(context, *peers);
  if (bf16) {
    exchange_rounded(context, *peers, sent, received);
  } else {
    check(ncclGroupStart(), "exchange");
    for (const PeerPart& part : sent) send(*peers, part, part.data, ncclFloat32);
    for (const PeerPart& part : received) receive(*peers, part, part.data, ncclFloat32);
    check(ncclGroupEnd(), "exchange");
  }
  order.end();
}

void reduce(Context& context, Peers* peers, const PeerPart* parts, int64_t count) {
  peers->under_way = true;
  InOrder order(context, *peers);
  check(ncclGroupStart(), "sums");
  for (const PeerPart* part = parts; part < parts + count; ++part) {
    context.rounded_weights->forget(part->data, size_t(part->count) * sizeof(float));
    check(ncclReduce(part->data, part->data, size_t(part->count), ncclFloat32, ncclSum, part->rank,
                     peers->comm, peers->stream),
          "sums");
  }
  check(ncclGroupEnd(), "sums");
  order.end();
}

void wait_for_peers(Context& context, Peers* peers, double seconds) {
  peers->under_way = true;
  try {
    wait(context, *peers, seconds);
  } catch (const Failure&) {
    context.lost = true;
    throw;
  }
  peers->under_way = false;
}

void mark(Context& context, Peers* peers, int place) {
  const cudaEvent_t event = peers->mark(place);
  if (context.graphs->recording()) {
    check(cudaEventRecordWithFlags(event, context.stream, cudaEventRecordExternal), "event");
  } else {
    check(cudaEventRecord(event, context.stream), "event");
  }
}

void begin_beside(Context& context, Peers* peers, int place) {
  if (peers->other || context.graphs->recording()) throw Failure("this is no work to do beside");
  check(cudaStreamWaitEvent(peers->stream, peers->mark(place)), "event");
  peers->other = std::exchange(context.stream, peers->stream);
}

void end_beside(Context& context, Peers* peers) {
  context.stream = std::exchange(peers->other, nullptr);
}

}  // namespace finetune::cuda

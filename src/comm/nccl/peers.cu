// Exchange between processes that each have their own GPU: NCCL on a separate stream. The stream
// has high priority, so that data goes out while the context computes. All operations are on that
// one stream, in the order of the calls on every process. The host does not wait for them. When it
// waits for the device, it checks for failures of peers and for an exchange that takes too long. A
// missing peer would otherwise block the stream for ever.
#include <nccl.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <deque>
#include <exception>
#include <span>
#include <vector>

#include "core/threads/spin.h"
#include "ops/cuda/kernels/rounded.h"
#include "ops/cuda/module/graphs.h"
#include "ops/cuda/ops.h"

namespace finetune::cuda {

// One exchange and its progress on the device.
struct Crossing {
  cudaEvent_t from = nullptr;   // the context's stream reached the exchange (if it waits for it)
  cudaEvent_t begun = nullptr;  // this process is ready to exchange
  cudaEvent_t done = nullptr;
  bool awaited = false;  // whether the context's stream waits for the exchange
};

struct Peers {
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  std::vector<cudaEvent_t> marks;  // by place
  cudaStream_t other = nullptr;    // the context's stream while its operations run on this one
  Context& context;
  const double seconds;            // limit for one exchange; 0: none
  std::deque<Crossing> under_way;  // exchanges not known to be done, in order
  std::vector<Crossing> unused;    // finished ones, whose events are used again
  double waited = 0;  // seconds that the context's stream waited for finished exchanges

  Peers(Context& context_, double seconds_) : context(context_), seconds(seconds_) {
    int least = 0, greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "stream");
    check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest), "stream");
  }
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  cudaEvent_t mark(int place) {
    while (int(marks.size()) <= place) make(&marks.emplace_back());
    return marks[size_t(place)];
  }
  Crossing next() {
    if (!unused.empty()) {
      const Crossing crossing = unused.back();
      unused.pop_back();
      return crossing;
    }
    Crossing crossing;
    make(&crossing.begun);
    for (cudaEvent_t* event : {&crossing.from, &crossing.done}) {
      check(cudaEventCreateWithFlags(event, cudaEventDefault), "event");
    }
    return crossing;
  }

 private:
  static void make(cudaEvent_t* event) {
    check(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "event");
  }
};

namespace {

static_assert(sizeof(PeerId) == sizeof(ncclUniqueId));

// spinning before a wait sleeps between checks
constexpr auto kSpin = std::chrono::microseconds(200);
constexpr int kSleep = 50;  // microseconds

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

// During its lifetime the context's operations run on the peers' stream, after the work on the
// context's stream; that stream continues after end(). If they run there anyway, nothing happens.
class InOrder {
 public:
  InOrder(Context& context, Peers& peers)
      : context_(context), own_(context.stream), peers_(peers), crossing_(peers.next()) {
    crossing_.awaited = own_ != peers.stream;
    if (crossing_.awaited) {
      check(cudaEventRecord(crossing_.from, own_), "event");
      check(cudaStreamWaitEvent(peers.stream, crossing_.from), "event");
    }
    check(cudaEventRecord(crossing_.begun, peers.stream), "event");
    context.stream = peers.stream;
  }
  // An incomplete set of operations leaves the peers waiting: give up at once.
  ~InOrder() {
    context_.stream = own_;
    if (!ended_) context_.lost = true;
  }
  void end() {
    check(cudaEventRecord(crossing_.done, peers_.stream), "event");
    if (crossing_.awaited) check(cudaStreamWaitEvent(own_, crossing_.done), "event");
    peers_.under_way.push_back(crossing_);
    ended_ = true;
  }

 private:
  Context& context_;
  const cudaStream_t own_;
  Peers& peers_;
  Crossing crossing_;
  bool ended_ = false;
};

void send(const Peers& peers, const PeerPart& part, const void* data, ncclDataType_t type) {
  check(ncclSend(data, size_t(part.count), type, part.rank, peers.comm, peers.stream), "sending");
}

void receive(const Peers& peers, const PeerPart& part, void* data, ncclDataType_t type) {
  check(ncclRecv(data, size_t(part.count), type, part.rank, peers.comm, peers.stream), "receiving");
}

// The parts in bf16, laid end to end for sending.
class Wire {
 public:
  explicit Wire(bfloat16* at) : at_(at) {}
  Bf16Matrix next(const PeerPart& part) {
    const Bf16Matrix place{at_, 1, part.count, part.count};
    at_ += space(part);
    return place;
  }
  // Element counts are rounded up so that each part is aligned for vector access.
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

// Records finished exchanges. Returns false if there are no new ones.
bool look(Peers& peers) {
  bool found = false;
  for (; !peers.under_way.empty() && reached(peers.under_way.front().done); found = true) {
    const Crossing crossing = peers.under_way.front();
    peers.under_way.pop_front();
    peers.unused.push_back(crossing);
    if (!crossing.awaited) continue;
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, crossing.from, crossing.done), "time");
    peers.waited += 1e-3 * double(milliseconds);
  }
  return found;
}

// Time in which this process computes or is stopped does not count towards the limit.
void wait_until(Peers& peers, cudaEvent_t event) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  WaitingTime waited;  // while the device is in one exchange, as far as known
  while (!reached(event)) {
    check_peers(peers);
    if (Clock::now() - start < kSpin) continue;
    if (look(peers) || peers.under_way.empty() || !reached(peers.under_way.front().begun)) {
      waited.begin_again();
    } else if (const double seconds = waited.look(); peers.seconds > 0 && seconds > peers.seconds) {
      throw Failure(
          "NCCL: another process has not responded within the time limit (--comm-timeout)");
    }
    usleep(kSleep);
  }
  check_peers(peers);
  look(peers);
}

void wait(Peers& peers, cudaEvent_t event) {
  Context& context = peers.context;
  try {
    wait_until(peers, event);
  } catch (const Failure&) {
    context.lost = true;
    throw;
  }
}

}  // namespace

Peers::~Peers() {
  context.wait_with_peers = nullptr;
  try {
    look(*this);
    context.lost |= !under_way.empty();
  } catch (const Failure&) {
    context.lost = true;
  }
  // Destroying a communicator is collective among the processes of a host. If only this process
  // failed, all would wait for each other before anyone reports.
  context.lost |= std::uncaught_exceptions() > 0;
  if (context.lost) return;
  if (comm) ncclCommDestroy(comm);
  for (const Crossing& crossing : unused) {
    for (cudaEvent_t event : {crossing.from, crossing.begun, crossing.done})
      cudaEventDestroy(event);
  }
  for (cudaEvent_t event : marks) cudaEventDestroy(event);
  cudaStreamDestroy(stream);
}

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

void connect_peers(Context& context, const PeerId* id, int rank, int size, double seconds,
                   Peers** peers) {
  auto connected = std::make_unique<Peers>(context, seconds);
  ncclUniqueId unique;
  std::memcpy(&unique, id, sizeof unique);
  check(ncclCommInitRank(&connected->comm, size, unique, rank), "connecting the processes");
  context.wait_with_peers = [all = connected.get()](cudaEvent_t event) { wait(*all, event); };
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

void waited_for_peers(Context&, Peers* peers, double* seconds) {
  *seconds = peers->waited;
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
  if (peers->other || context.graphs->recording())
    throw Failure("exchanges beside other work are not possible here");
  check(cudaStreamWaitEvent(peers->stream, peers->mark(place)), "event");
  peers->other = std::exchange(context.stream, peers->stream);
}

void end_beside(Context& context, Peers* peers) {
  context.stream = std::exchange(peers->other, nullptr);
}

}  // namespace finetune::cuda

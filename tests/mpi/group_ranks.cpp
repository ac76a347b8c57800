// One process of a run in groups and links, for groups_test.py: `test_group_ranks SCENARIO ...`.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include "comm/agreement.h"
#include "comm_checks.h"
#include "core/clock.h"

namespace {

using namespace finetune;

constexpr size_t kMost = (size_t(256) << 10) + 1;  // more than a mailbox

// The run's ranks of this color, checked as a group of their own.
void check_group(Communicator& run, const std::function<int(int)>& color_of) {
  const auto group = run.split(color_of(run.rank()));
  std::vector<int> members;
  for (int r = 0; r < run.size(); ++r) {
    if (color_of(r) == color_of(run.rank())) members.push_back(r);
  }
  require(group->size() == int(members.size()), "the color's processes");
  require(members[size_t(group->rank())] == run.rank(), "in the order of their ranks");
  const auto runs_rank = [&](int rank) { return members[size_t(rank)]; };
  check_numbers(*group, runs_rank);
  check_collectives(*group, kMost);
  if (run.size() <= 4) check_memory(*group);
  check_exchange(*group, kMost);
  run.barrier();
}

void check_groups(Communicator& run) {
  const auto size = size_t(run.size());
  std::vector<int> hosts(size), locals(size);
  const int host = run.host(), local = run.local_rank();
  run.all_gather(&host, sizeof host, hosts.data());
  run.all_gather(&local, sizeof local, locals.data());
  check_group(run, [](int) { return 5; });                                // all
  check_group(run, [](int r) { return r; });                              // each alone
  check_group(run, [](int r) { return r / 2; });                          // pairs of neighbours
  check_group(run, [](int r) { return r % 2; });                          // across hosts
  check_group(run, [&](int r) { return int(r > 0); });                    // all but one
  check_group(run, [&](int r) { return int(r == 0 || r == 2); });         // not neighbours
  check_group(run, [&](int r) { return hosts[size_t(r)]; });              // a host
  check_group(run, [&](int r) { return locals[size_t(r)]; });             // one process a host
  check_group(run, [&](int r) { return int(r + 1 == run.size()) * 3; });  // all but the last
}

// Coordinates of a layout of 2 replicas, 2 stages and 2 tensor ranks, the last varying fastest, and
// groups along each axis.
struct Axes {
  explicit Axes(Communicator& run)
      : t(run.split(run.rank() / 2)),
        p(run.split(run.rank() / 4 * 2 + run.rank() % 2)),
        d(run.split(run.rank() % 4)) {}
  std::unique_ptr<Communicator> t, p, d;
};

void check_all_gather(Communicator& c, int turn) {
  const auto bytes = size_t(turn) % 90;
  const int said = c.rank() * 100 + turn;
  std::vector<uint8_t> all(bytes * size_t(c.size())), expected;
  c.all_gather(saying(said, bytes).data(), bytes, all.data());
  for (int r = 0; r < c.size(); ++r) {
    const auto part = saying(r * 100 + turn, bytes);
    expected.insert(expected.end(), part.begin(), part.end());
  }
  require(all == expected, concat("all_gather ", turn));
}

void check_axes(Communicator& run) {
  require(run.size() == 8, "8 processes");
  const Axes axes(run);
  require(axes.t->size() == 2 && axes.p->size() == 2 && axes.d->size() == 2, "2 x 2 x 2");
  const auto part = axes.t->split(axes.t->rank());  // a group of a group
  require(part->size() == 1 && part->name(0) == run.name(run.rank()), "alone");
  const int64_t before = run.bytes_sent();
  const auto memory = axes.t->allocate_shared(64);
  auto* counts = static_cast<int*>(memory.get());
  for (int turn = 0; turn < 400; ++turn) {
    check_all_gather(*axes.t, turn);
    if (turn % 2 == 0) check_all_gather(*axes.p, turn);
    axes.t->host_barrier();
    counts[axes.t->local_rank()] = turn;
    axes.t->host_barrier();
    for (int i = 0; i < axes.t->local_size(); ++i) require(counts[i] == turn, "memory of a group");
    int64_t told = axes.d->rank() == turn % 2 ? turn : -1;
    axes.d->broadcast(&told, sizeof told, turn % 2);
    require(told == turn, "broadcast");
    if (turn % 3 == 0) check_all_gather(*axes.p, turn + 1);
    if (turn % 50 == 0) check_all_gather(run, turn);
    check_all_gather(*part, turn);
  }
  require(part->bytes_sent() == 0, "a process alone sends nothing");
  require(axes.d->bytes_sent() == 200 * 8, "broadcasts count at the root");
  int64_t t = 0, whole = 0;
  for (int turn = 0; turn < 400; ++turn) {
    t += turn % 90;
    if (turn % 50 == 0) whole += 7 * (turn % 90);
  }
  require(axes.t->bytes_sent() == t, "all_gathers count for each other process");
  require(run.bytes_sent() - before == whole, "and of the run alone its own");
}

void check_counts(Communicator& run) {
  const auto group = run.split(0);
  const auto count = [&](auto&& action) {
    const int64_t before = group->bytes_sent();
    action();
    return group->bytes_sent() - before;
  };
  const int size = group->size(), rank = group->rank();
  std::vector<uint8_t> all(size_t(size) * 10), data(10);
  require(count([&] { group->barrier(), group->host_barrier(); }) == 0, "barriers");
  require(count([&] { group->allocate_shared(100); }) == 0, "memory");
  require(count([&] { group->split(rank); }) == 0, "split");
  require(count([&] { group->all_gather(data.data(), 10, all.data()); }) == 10 * (size - 1), "a");
  require(count([&] { group->broadcast(data.data(), 10, 1); }) == (rank == 1) * 10 * (size - 1),
          "broadcast");
  std::vector<std::vector<uint8_t>> parts;
  for (int r = 0; rank == 0 && r < size; ++r) parts.emplace_back(size_t(r) + 1);
  const int64_t scattered = count([&] { group->scatter(parts); });
  require(scattered == (rank == 0 ? size * (size + 1) / 2 - 1 : 0), "scatter");
  require(count([&] { group->gather({data.data(), size_t(rank)}); }) == rank, "gather");
  group->count_sent(12);
  std::vector<LinkEnds> ends = {{0, 1, 100}};
  std::vector<std::unique_ptr<Link>> links;
  require(count([&] { links = group->make_links(ends); }) == 0, "make_links");
  require((links[0] != nullptr) == (rank < 2), "the ends alone have a link");
  const int64_t sent = count([&] {
    if (rank == 0) links[0]->send(data.data(), 10, {"numbers"});
    if (rank == 1) links[0]->receive(data.data(), 10, {"numbers"});
  });
  require(sent == (rank == 0) * 10, "a link's bytes are its communicator's");
  require(rank > 1 || links[0]->bytes_sent() == (rank == 0) * 10, "and its own");
}

void check_number_of_groups(Communicator& run) {
  std::vector<std::unique_ptr<Communicator>> groups;
  for (int i = 1; i < 8; ++i) groups.push_back(run.split(run.rank() % i));
  for (auto& group : groups) check_all_gather(*group, 17);
  try {
    run.split(0);
    require(false, "one more is refused");
  } catch (const Error& error) {
    require(error.code() == ExitCode::internal, error.what());
  }
  groups.erase(groups.begin() + 3);
  groups.push_back(run.split(0));
  for (auto& group : groups) check_all_gather(*group, 18);
}

// A ring of links in both directions.
class Rings {
 public:
  Rings(Communicator& c, size_t capacity) : c_(c) {
    std::vector<LinkEnds> ends;
    for (int step : {1, -1}) {
      for (int r = 0; r < c.size(); ++r) ends.push_back({r, neighbour(r, step), capacity});
    }
    links_ = c.make_links(ends);
  }

  void send(int step, int turn) {
    const auto text = saying(turn, bytes_of(c_.rank(), step, turn));
    link(c_.rank(), step).send(text.data(), text.size(), {"numbers of turn", turn});
  }
  void receive(int step, int turn) {
    const int from = neighbour(c_.rank(), -step);
    std::vector<uint8_t> text(bytes_of(from, step, turn));
    link(from, step).receive(text.data(), text.size(), {"numbers of turn", turn});
    require(text == saying(turn, text.size()), concat("message ", turn));
  }
  size_t most = 0;  // bytes of a message

 private:
  int neighbour(int rank, int step) const { return (rank + step + c_.size()) % c_.size(); }
  Link& link(int from, int step) {
    return *links_[size_t(from) + (step == 1 ? 0 : size_t(c_.size()))];
  }
  size_t bytes_of(int from, int step, int turn) const {
    std::mt19937 random(uint32_t(turn * 64 + from * 2 + (step > 0)));
    return random() % 8 == 0 ? 0 : random() % 5 == 0 ? most : random() % (most + 1);
  }

  Communicator& c_;
  std::vector<std::unique_ptr<Link>> links_;
};

// Messages within the capacity are sent before anybody receives; longer ones need a receiver.
void check_links(Communicator& run, int turns) {
  const auto group = run.split(run.rank() % 2);
  Rings rings(run, 1000);
  for (int turn = 0; turn < turns; ++turn) {
    // In an odd ring two neighbours would both send first.
    const bool fits = turn % 3 != 0 || run.size() % 2 == 1;
    rings.most = !fits && turn % 99 == 0 ? size_t(2) << 20 : fits ? 1000 : 5000;
    if (turn % 50 == 0) check_all_gather(*group, turn);
    const bool sends_first = fits || run.rank() % 2 == 0;
    for (int step : {1, -1}) {
      if (sends_first) rings.send(step, turn);
      if (!sends_first) rings.receive(step, turn);
    }
    for (int step : {1, -1}) {
      if (!sends_first) rings.send(step, turn);
      if (sends_first) rings.receive(step, turn);
    }
    if (turn % 70 == 0) check_all_gather(run, turn);
  }
}

// A message from rank 0 to another host must make progress while rank 0 waits on its own host for a
// process that needs an answer from there.
void check_handover(Communicator& run) {
  require(run.size() == 4 && run.hosts() == 2, "4 processes on 2 hosts");
  const size_t bytes = size_t(8) << 20;
  const std::vector<LinkEnds> ends = {{0, 2, bytes}, {2, 1, 8}};
  const auto links = run.make_links(ends);
  run.set_timeout(100);
  const double start = seconds_now();
  for (int turn = 0; turn < 10; ++turn) {
    std::vector<uint8_t> data(bytes);
    if (run.rank() == 0) links[0]->send(saying(turn, bytes).data(), bytes, {"much", turn});
    if (run.rank() == 2) {
      links[0]->receive(data.data(), bytes, {"much", turn});
      require(data == saying(turn, bytes), "much");
      links[1]->send(data.data(), 8, {"little", turn});
    }
    if (run.rank() == 1) links[1]->receive(data.data(), 8, {"little", turn});
    if (run.host() == 0) run.host_barrier();
  }
  require(seconds_now() - start < 60, "nobody waits for the time limit");
}

// Messages that are never received block nobody.
void check_unreceived(Communicator& run) {
  const size_t bytes = size_t(4) << 20;
  const std::vector<LinkEnds> ends = {{0, run.size() - 1, bytes}};
  const auto links = run.make_links(ends);
  if (run.rank() == 0) links[0]->send(saying(1, bytes).data(), bytes, {"what nobody wants"});
}

void time_links(Communicator& run, int turns) {
  const std::vector<LinkEnds> ends = {{0, run.size() - 1, 1 << 20}, {run.size() - 1, 0, 1 << 20}};
  const auto links = run.make_links(ends);
  std::vector<uint8_t> data(size_t(1) << 20);
  for (size_t bytes : {size_t(8), data.size()}) {
    run.barrier();
    const double start = seconds_now();
    for (int turn = 0; turn < turns; ++turn) {
      if (run.rank() == 0) links[0]->send(data.data(), bytes, {"ping"});
      if (run.rank() == run.size() - 1) links[0]->receive(data.data(), bytes, {"ping"});
      if (run.rank() == run.size() - 1) links[1]->send(data.data(), bytes, {"pong"});
      if (run.rank() == 0) links[1]->receive(data.data(), bytes, {"pong"});
    }
    const double each = (seconds_now() - start) / turns / 2;
    if (run.rank() == 0) std::printf("%zu bytes: %.2f microseconds\n", bytes, 1e6 * each);
  }
}

// `victim` fails while others wait for it, directly or through another process.
struct Fault {
  std::string how, where;
  int victim;
};

void fail(Communicator& run, const Fault& fault) {
  if (fault.how == "kill") ::raise(SIGKILL);
  if (fault.how == "stop") ::raise(SIGSTOP);
  if (fault.how == "late") ::sleep(60);
  run.note("the wrong place", -1);
}

// Stages in a row: activations go up, gradients come down.
void pipeline(Communicator& run, const Fault& fault) {
  const int last = run.size() - 1, rank = run.rank();
  std::vector<LinkEnds> ends;
  for (int r = 0; r < last; ++r) ends.push_back({r, r + 1, 1 << 20});
  for (int r = 0; r < last; ++r) ends.push_back({r + 1, r, 1 << 20});
  const auto links = run.make_links(ends);
  std::vector<uint8_t> data(size_t(1) << 20);
  for (int micro = 0; micro < 5; ++micro) {
    if (rank == fault.victim && micro == 3) fail(run, fault);
    // Computes for a long time before it waits for the victim, so that its waiters have waited
    // longer.
    if (fault.where == "slow" && micro == 3 && rank == fault.victim + 1) ::usleep(3'000'000);
    if (rank > 0)
      links[size_t(rank) - 1]->receive(data.data(), data.size(),
                                       {"activations of micro-batch", micro});
    if (rank < last) {
      links[size_t(rank)]->send(data.data(), data.size(), {"activations of micro-batch", micro});
      links[size_t(last) + size_t(rank)]->receive(data.data(), data.size(),
                                                  {"gradients of micro-batch", micro});
    }
    if (rank > 0)
      links[size_t(last + rank) - 1]->send(data.data(), data.size(),
                                           {"gradients of micro-batch", micro});
  }
}

void wait_in_vain(Communicator& run, const Fault& fault) {
  run.set_timeout(fault.where == "slow" ? 4 : 3);
  run.note("forward pass", 17);
  if (fault.where == "links" || fault.where == "slow") return pipeline(run, fault);
  const Axes axes(run);
  // The counters of one group are independent of another's.
  for (int turn = 0; turn < 20; ++turn) check_all_gather(*axes.d, turn);
  run.barrier();
  for (int turn = 0; turn < 3; ++turn) {
    if (turn == 1 && run.rank() == fault.victim) fail(run, fault);
    if (fault.where == "tensor") check_all_gather(*axes.t, 80);
    if (fault.where == "tensor" && turn == 1) return;  // nobody waits in another group
    check_all_gather(*axes.p, 81);
    check_all_gather(*axes.d, 82);
  }
}

void check(Communicator& run, int argc, char** argv) {
  const std::string scenario = argc > 1 ? argv[1] : "";
  const auto word = [&](int i) { return std::string(argc > i ? argv[i] : ""); };
  if (scenario == "groups") return check_groups(run);
  if (scenario == "axes") return check_axes(run);
  if (scenario == "counts") return check_counts(run);
  if (scenario == "number") return check_number_of_groups(run);
  if (scenario == "links") return check_links(run, std::atoi(word(2).c_str()));
  if (scenario == "handover") return check_handover(run);
  if (scenario == "unreceived") return check_unreceived(run);
  if (scenario == "time") return time_links(run, std::atoi(word(2).c_str()));
  if (scenario == "fault") return wait_in_vain(run, {word(2), word(3), std::atoi(word(4).c_str())});
  throw usage_error("no scenario ", scenario);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto run = make_communicator();
    int code = 0;
    try {
      check(*run, argc, argv);
    } catch (const PeerFailed& peer) {
      code = int(peer.code);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "finetune: error: %s: %s\n", run->name(run->rank()).c_str(),
                   error.what());
      run->abort(1);
    }
    run->finish();
    return code;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "finetune: error: %s\n", error.what());
    return 1;
  }
}

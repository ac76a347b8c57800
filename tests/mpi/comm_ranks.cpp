// One process of a parallel run, for comm_test.py: `test_comm_ranks SCENARIO [NUMBER]`.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>

#include "comm/agreement.h"
#include "comm/placement.h"
#include "comm_checks.h"
#include "core/clock.h"

namespace {

using namespace finetune;

void check_agreement(Communicator& c) {
  int calls = 0;
  agree_on_errors(c, [&] { ++calls; });
  require(calls == 1, "the action is called once");
  // Rank `failing` fails, or all ranks (-1); checks what each process throws.
  const auto outcome = [&](auto fails, auto make) -> std::string {
    try {
      agree_on_errors(c, [&] {
        if (fails(c.rank())) make();
      });
    } catch (const Error& error) {
      return concat(int(error.code()), " ", error.what());
    } catch (const PeerFailed& peer) {
      return concat(int(peer.code), " silence");
    }
    return "nothing";
  };
  const auto message = [&](int reporter, const std::string& code, const std::string& text) {
    if (c.rank() != reporter) return code + " silence";
    return code + " " + (c.size() > 1 ? c.name(reporter) + ": " : "") + text;
  };
  const int last = c.size() - 1;
  const auto data = [] { throw data_error("train.csv:118: empty"); };
  require(outcome([&](int r) { return r == last; }, data) ==
                  message(last, "3", "train.csv:118: empty") ||
              (c.size() == 1),
          "the last rank's error");
  require(outcome([](int) { return true; }, data) ==
              (c.rank() == 0 ? "3 train.csv:118: empty" : "3 silence"),
          "everybody's error has no name");
  const auto own = [&] { throw Error(ExitCode(2 + c.rank() % 2), concat("error ", c.rank())); };
  if (c.size() > 1) {
    require(outcome([](int) { return true; }, own) == message(0, "2", "error 0"), "lowest rank");
    require(outcome([](int r) { return r > 0; }, own) == message(1, "3", "error 1"), "rank 1");
    require(outcome([](int r) { return r == 1; }, [] { throw std::bad_alloc(); }) ==
                message(1, "5", "out of memory"),
            "memory");
    require(outcome([](int r) { return r == 1; }, [] { throw std::runtime_error("odd"); }) ==
                message(1, "1", "odd"),
            "internal");
    // The inner agreement decides who reports.
    const auto inner = [&] {
      agree_on_errors(c, [&] {
        if (c.rank() == 1) throw model_error("no head");
      });
    };
    require(outcome([](int) { return true; }, inner) == message(1, "4", "no head"), "nested");
  }
  require(outcome([](int) { return false; }, data) == "nothing", "no error");
}

void run(Communicator& c, const std::string& scenario, int number) {
  const int victim = number;
  if (scenario == "all") {
    check_numbers(c, [](int rank) { return rank; });
    // More would take too long.
    const size_t most = c.size() > 4 ? size_t(1) << 20 : size_t(1) << 30;
    check_collectives(c, most);
    check_memory(c);
    check_exchange(c, c.size() > 4 ? size_t(4) << 20 : most);
    check_agreement(c);
    const int cores = cores_for_process(c);
    require(cores >= 1 && cores <= host_cores(), "cores");
    require(binding_advice(c).empty() == (number == 0), "advice: " + binding_advice(c));
    c.note("a phase whose name is much longer than the place that the control block has for it", 3);
  } else if (scenario == "barriers") {
    const double start = seconds_now();
    for (int i = 0; i < number; ++i) c.barrier();
    const double each = (seconds_now() - start) / number;
    if (c.rank() == 0) std::printf("%.2f microseconds\n", 1e6 * each);
  } else if (scenario == "kill" || scenario == "stop") {
    if (scenario == "stop") c.set_timeout(3);
    c.note("backward pass", 17);
    c.barrier();
    if (c.rank() == victim) ::raise(scenario == "kill" ? SIGKILL : SIGSTOP);
    c.barrier();
  } else if (scenario == "late") {  // computes instead of communicating; -1: all except rank 0
    c.set_timeout(2);
    c.note("forward pass", 4);
    if (c.rank() == victim || (victim < 0 && c.rank() > 0)) ::sleep(60);
    c.barrier();
  } else if (scenario == "kill-computing") {  // while no other process waits
    c.note("forward pass", 4);
    c.barrier();
    if (c.rank() == victim) ::raise(SIGKILL);
    for (;;) ::pause();
  } else if (scenario == "abort" || scenario == "abort-computing") {
    c.barrier();
    if (c.rank() == victim) {
      if (c.claim_error_report()) std::fprintf(stderr, "finetune: error: no model\n");
      c.abort(4);
    }
    while (scenario == "abort-computing") ::pause();
    c.barrier();
  } else if (scenario == "abort-all") {  // all find a fault at once; one reports
    c.barrier();
    if (c.claim_error_report()) std::fprintf(stderr, "finetune: error: no model\n");
    c.abort(4);
  } else if (scenario == "leave") {  // without finish()
    c.note("a bug", -1);
    c.barrier();
    if (c.rank() == victim) ::_exit(0);
    c.barrier();
  } else if (scenario == "exit-code") {
    c.finish();
    ::_exit(number);
  } else if (scenario == "error") {
    agree_on_errors(c, [&] {
      if (c.rank() == victim) throw data_error("train.csv:118: column 'text' is empty");
    });
  } else if (scenario == "idle") {
    std::printf("idle\n");
    std::fflush(stdout);
    c.barrier();
    if (c.rank() == 0) ::sleep(60);
    c.barrier();
  } else {
    throw usage_error("no scenario ", scenario);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto c = make_communicator();
    int code = 0;
    try {
      run(*c, argc > 1 ? argv[1] : "", argc > 2 ? std::atoi(argv[2]) : 0);
    } catch (const PeerFailed& peer) {
      code = int(peer.code);
    } catch (const Error& error) {
      std::fprintf(stderr, "finetune: error: %s\n", error.what());
      if (error.code() == ExitCode::internal) c->abort(1);
      code = int(error.code());
    }
    c->finish();
    return code;
  } catch (const PeerFailed& peer) {
    return int(peer.code);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "finetune: error: %s\n", error.what());
    return 1;
  }
}

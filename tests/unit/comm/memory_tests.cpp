// Shared memory between processes, and the contents of the control block.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "../contains.h"
#include "../error_line.h"
#include "comm/host/control_block.h"
#include "comm/host/shared_memory.h"
#include "core/error.h"

using namespace finetune;
using finetune::test::contains;
using finetune::test::error_line;

TEST_CASE("two mappings of one memory are one") {
  const Descriptor memory = create_memory(5'000'000);
  const Descriptor opened = open_memory(::getpid(), memory.number());
  const auto first = map_memory(memory, 5'000'000), second = map_memory(opened, 5'000'000);
  auto* a = static_cast<int*>(first.get());
  const auto* b = static_cast<const int*>(second.get());
  CHECK(a != b);
  CHECK(b[1'000'000] == 0);
  a[1'000'000] = 5;
  CHECK(b[1'000'000] == 5);
  // Where huge pages can be.
  CHECK(reinterpret_cast<uintptr_t>(a) % (2 << 20) == 0);
}

TEST_CASE("failing to get memory is an Error(device) with the size") {
  CHECK(contains(error_line(ExitCode::device,
                            [] {
                              const Descriptor memory = create_memory(size_t(1) << 50);
                              map_memory(memory, size_t(1) << 50);
                            }),
                 "1073741824 MiB"));
  CHECK(contains(error_line(ExitCode::device, [] { open_memory(::getpid(), 9999); }), "/fd/9999"));
}

TEST_CASE("a slot tells of the phase and the step") {
  ProcessSlot slot{};
  write_phase(slot, "backward pass", 17);
  CHECK(read_phase(slot) == "backward pass, step 17");
  write_phase(slot, "reading data", -1);
  CHECK(read_phase(slot) == "reading data");
  write_phase(slot, std::string(100, 'x').c_str(), -1);
  CHECK(read_phase(slot) == std::string(63, 'x'));
}

TEST_CASE("the kernel tells whether a process lives") {
  const ProcessStatus own = process_status(::getpid());
  CHECK(own.alive());
  CHECK(!own.stopped());
  CHECK(own.start_time > 0);
  CHECK(process_status(::getpid()).start_time == own.start_time);
  const pid_t child = ::fork();
  if (child == 0) {
    ::raise(SIGSTOP);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, WUNTRACED);
  CHECK(process_status(child).stopped());
  CHECK(process_status(child).alive());
  ::kill(child, SIGKILL);
  siginfo_t info;
  ::waitid(P_PID, id_t(child), &info, WEXITED | WNOWAIT);
  CHECK(process_status(child).state == 'Z');
  CHECK(!process_status(child).alive());
  ::waitpid(child, &status, 0);
  CHECK(!process_status(child).alive());
}

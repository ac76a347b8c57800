// Signals, durations, fingerprints and process statistics.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <vector>

#include "../contains.h"
#include "core/error.h"
#include "core/files/files.h"
#include "core/process_stats.h"
#include "core/sha256.h"
#include "error_line.h"
#include "temporary_directory.h"
#include "train/options/option_words.h"
#include "train/run/fingerprint.h"
#include "train/signals.h"

using namespace finetune;
using finetune::test::contains;

TEST_CASE("the first signal is remembered") {
  for (auto [number, code] :
       {std::pair{SIGINT, 130}, {SIGTERM, 85}, {SIGUSR1, 85}, {SIGUSR2, 85}}) {
    SignalGuard guard;
    CHECK(guard.request() == StopRequest::none);
    ::raise(number);
    CHECK(int(guard.request()) == code);
    CHECK(int(exit_code_of(guard.request())) == code);
    ::raise(SIGUSR1);
    CHECK(int(guard.request()) == code);
  }
}

TEST_CASE("a second interrupt ends the process at once; afterwards the old handlers are back") {
  pid_t child = fork();
  if (child == 0) {
    SignalGuard guard;
    ::raise(SIGINT);
    ::raise(SIGINT);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 130);

  child = fork();
  if (child == 0) {
    ::signal(SIGTERM, SIG_DFL);  // not the test framework's
    { SignalGuard guard; }
    ::raise(SIGTERM);
    _exit(0);
  }
  waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status));
}

TEST_CASE("durations") {
  CHECK(parse_duration("90s", "--time-limit") == 90);
  CHECK(parse_duration("10m", "--time-limit") == 600);
  CHECK(parse_duration("1h30m", "--time-limit") == 5400);
  CHECK(parse_duration("1d2h3m4s", "--time-limit") == 93784);
  for (const char* text : {"0", "0s"}) CHECK(parse_duration(text, "--comm-timeout", true) == 0);
  for (const char* text : {"", "0", "10", "m", "0s", "-1s", "1.5h", "30m1h", "1m1m", "10 m",
                           "10min", "9999999999s", "999999999d", "1h30"}) {
    CAPTURE(text);
    const std::string fault =
        test::error_line(ExitCode::usage, [&] { parse_duration(text, "--time-limit"); });
    CHECK(fault.starts_with("--time-limit"));
    CHECK(contains(fault, "1h30m"));
  }
}

TEST_CASE("fingerprints of files") {
  test::TemporaryDirectory directory;
  write_file(directory / "a", "abc");
  write_file(directory / "b", std::string(1 << 20, 'b'));
  CHECK(Fingerprint({}).result() == "");
  // FIPS 180-4's example.
  std::string abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  CHECK(Fingerprint({directory / "a"}).result() == abc);
  std::string b = sha256_of_file(directory / "b");
  Fingerprint both({directory / "a", directory / "b"});
  CHECK(both.result() == sha256_of(abc + "\n" + b + "\n"));
  CHECK(both.finished());
  CHECK(both.result() == both.result());
  Fingerprint missing({directory / "a", directory / "absent"});
  CHECK_THROWS_WITH_AS(missing.result(), doctest::Contains("absent"), Error);
  const auto read = [&] { Fingerprint({directory / "absent"}, ExitCode::model).result(); };
  CHECK(test::error_line(ExitCode::model, read) != "");  // of a vocabulary, say
  Fingerprint folder({directory.path()});
  CHECK_THROWS_AS(folder.result(), Error);
  REQUIRE(::mkfifo((directory / "pipe").c_str(), 0600) == 0);
  Fingerprint pipe({directory / "pipe"});  // it has no writer
  CHECK_THROWS_WITH_AS(pipe.result(), doctest::Contains("not a regular file"), Error);
}

TEST_CASE("an unneeded fingerprint is abandoned") {
  test::TemporaryDirectory directory;
  const fs::path hole = directory / "hole";  // a sparse file that would take an hour to read
  write_file(hole, "");
  fs::resize_file(hole, uintmax_t{1} << 40);
  auto begin = std::chrono::steady_clock::now();
  { Fingerprint endless({hole}); }
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::minutes(5));
}

TEST_CASE("memory and time of this process") {
  double before = peak_memory_mb();
  CHECK(before > 1);
  constexpr size_t size = 64 << 20;
  {
    std::vector<char> memory(size, 1);
    CHECK(memory[size - 1] == 1);
  }
  double after = peak_memory_mb();
  CHECK(after >= 64);
  CHECK(after < before + 200);
  double first = seconds_since_start();
  CHECK(first > 0);
  CHECK(first < 3600);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  double second = seconds_since_start();
  CHECK(second - first >= 0.015);  // /proc counts in hundredths of a second
  CHECK(second - first < 300);
  bool kernel = false;
  for (const auto& [name, value] : host_facts()) {
    CHECK(!value.empty());
    kernel = kernel || (name == "kernel" && value.starts_with("Linux"));
  }
  CHECK(kernel);
}

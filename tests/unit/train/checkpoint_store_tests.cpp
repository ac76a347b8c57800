// A folder of checkpoints: which one is used, which are removed, and leftovers of failed writers.
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "../contains.h"
#include "../shared.h"
#include "checkpoint_fixture.h"
#include "core/threads/parallel.h"
#include "temporary_directory.h"
#include "train/checkpoint/checkpoint_store.h"

using namespace finetune;
using namespace finetune::test;

TEST_CASE("the newest whole checkpoint is found behind damaged ones") {
  TemporaryDirectory directory;
  Sample sample(1);
  CHECK(find_checkpoints(directory / "absent").empty());
  CHECK(!newest_valid_checkpoint(directory.path()));
  for (int64_t step : {30, 10, 20, 123456789}) {
    write_checkpoint(checkpoint_path(directory.path(), step), sample_state(step), sample.table,
                     sample.arenas());
  }
  write_bytes(directory / "notes.h5", "not ours");
  write_bytes(directory / "step-00000099.h5.tmp.1", "killed while it was written");
  auto files = find_checkpoints(directory.path());
  REQUIRE(files.size() == 4);
  CHECK(files[0].step == 10);
  CHECK(files[3].step == 123456789);
  CHECK(newest_valid_checkpoint(directory.path())->file.step == 123456789);

  fs::resize_file(files[3].path, fs::file_size(files[3].path) / 2);
  std::string bytes = read_text_file(files[2].path);
  bytes[bytes.size() / 2] = char(bytes[bytes.size() / 2] ^ 64);
  write_bytes(files[2].path, bytes);
  CHECK(newest_valid_checkpoint(directory.path())->file.step == 20);
  // A copy under another step's name would resume at the wrong step.
  fs::copy_file(files[0].path, files[1].path, fs::copy_options::overwrite_existing);
  CHECK(newest_valid_checkpoint(directory.path())->file.step == 10);
  write_bytes(files[0].path, "");
  CHECK(!newest_valid_checkpoint(directory.path()));
}

// If as many threads as blocks exist already, no more are needed.
TEST_CASE("a lack of threads is none of the checkpoints' faults" *
          doctest::skip(available_cores() > 8)) {
  TemporaryDirectory directory;
  EncoderConfig config = tiny_config();
  config.vocab_size = 100000;  // 18 MiB, a block of the seal each
  Sample sample(1, config);
  write_checkpoint(checkpoint_path(directory.path(), 10), sample_state(10), sample.table,
                   sample.arenas());
  const pid_t child = ::fork();
  if (child == 0) {
    set_threads(16);
    // Memory for two or three stacks.
    std::ifstream status("/proc/self/statm");
    rlim_t pages = 0;
    status >> pages;
    const rlim_t bytes = pages * rlim_t(::getpagesize()) + (rlim_t(24) << 20);
    const rlimit limit{bytes, bytes};
    ::setrlimit(RLIMIT_AS, &limit);
    try {
      newest_valid_checkpoint(directory.path());
    } catch (const Error& error) {
      ::_exit(int(error.code()));
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == int(ExitCode::device));
}

TEST_CASE("pruning keeps the newest and the best, and strangers' files") {
  TemporaryDirectory directory;
  auto touch = [&](const std::string& name) { write_bytes(directory / name, "x"); };
  for (int64_t step = 10; step <= 60; step += 10) {
    touch(checkpoint_path("", step).string());
  }
  touch("step-00000030.h5.tmp.77");
  touch("step-00000030.h5.tmp.0123456789abcdef");
  touch("step-00000030.h5.tmp.mine");
  touch("notes.txt");
  touch("step-final.h5");
  prune_checkpoints(directory.path(), 50, 2, 20);
  auto steps = [&] {
    std::vector<int64_t> out;
    for (const auto& file : find_checkpoints(directory.path())) out.push_back(file.step);
    return out;
  };
  CHECK(steps() == std::vector<int64_t>{20, 40, 50});
  CHECK(!fs::exists(directory / "step-00000030.h5.tmp.77"));
  CHECK(!fs::exists(directory / "step-00000030.h5.tmp.0123456789abcdef"));
  CHECK(fs::exists(directory / "step-00000030.h5.tmp.mine"));
  CHECK(fs::exists(directory / "notes.txt"));
  CHECK(fs::exists(directory / "step-final.h5"));
  prune_checkpoints(directory.path(), 50, 0, -1);
  CHECK(steps() == std::vector<int64_t>{50});
}

TEST_CASE("two processes that write the same checkpoint leave a whole one") {
  TemporaryDirectory directory;
  Sample sample(1);
  fs::path path = directory / "step-00000001.h5";
  pid_t child = fork();
  if (child == 0) {
    int status = 0;
    try {
      for (int i = 0; i < 20; ++i) {
        write_checkpoint(path, sample_state(1), sample.table, sample.arenas());
      }
    } catch (...) {
      status = 1;
    }
    _exit(status);
  }
  for (int i = 0; i < 20; ++i) {
    write_checkpoint(path, sample_state(1), sample.table, sample.arenas());
    CHECK(refusal(path) == "");
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(entries(directory.path()) == 1);
}

TEST_CASE("a writer killed at any moment leaves only whole checkpoints") {
  TemporaryDirectory directory;
  Sample sample(1);
  int killed_with_some = 0;
  for (int round = 0; round < 12; ++round) {
    pid_t child = fork();
    if (child == 0) {
      for (int64_t step = round * 1000;; ++step) {
        write_checkpoint(checkpoint_path(directory.path(), step), sample_state(step), sample.table,
                         sample.arenas());
        prune_checkpoints(directory.path(), step, 3, -1);
      }
    }
    ::usleep(useconds_t(3000 + 7919 * round));
    ::kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    auto files = find_checkpoints(directory.path());
    for (const auto& file : files) {
      CAPTURE(file.path.string());
      CHECK(refusal(file.path) == "");
    }
    killed_with_some += files.empty() ? 0 : 1;
  }
  CHECK(killed_with_some > 0);
}

TEST_CASE("a full disk leaves the checkpoints as they were") {
  TemporaryDirectory directory;
  if (::geteuid() != 0 ||
      ::mount("tmpfs", directory.path().c_str(), "tmpfs", 0, "size=1600k") != 0) {
    return skip("a small tmpfs cannot be mounted here");
  }
  Sample sample(1);
  fs::path first = checkpoint_path(directory.path(), 1);
  int64_t step = 1;
  const std::string message = error_line(ExitCode::model, [&] {
    for (; step < 20; ++step) {
      write_checkpoint(checkpoint_path(directory.path(), step), sample_state(step), sample.table,
                       sample.arenas());
    }
  });
  CHECK(step > 1);
  CHECK(contains(message, "MiB"));
  CHECK(entries(directory.path()) == size_t(step - 1));
  CHECK(newest_valid_checkpoint(directory.path())->file.step == step - 1);
  // Once there is room again, writing works.
  fs::remove(first);
  write_checkpoint(checkpoint_path(directory.path(), step), sample_state(step), sample.table,
                   sample.arenas());
  CHECK(newest_valid_checkpoint(directory.path())->file.step == step);
  ::umount2(directory.path().c_str(), MNT_DETACH);
}

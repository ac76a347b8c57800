// Files that are truncated while mapped: an error at the end, never a signal.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "core/files/descriptor.h"
#include "core/files/files.h"
#include "core/sha256.h"
#include "core/threads/parallel.h"
#include "failure_of.h"
#include "temporary_directory.h"

using namespace finetune;
using test::failure_of;

namespace {

constexpr size_t kPage = 4096;

void cut(const fs::path& path, size_t size) {
  REQUIRE(::truncate(path.c_str(), off_t(size)) == 0);
}

std::string fault_of(const MappedFile& file) {
  return failure_of([&] { file.check_intact(); });
}

size_t sum_of(std::string_view text) {
  return std::accumulate(text.begin(), text.end(), size_t{0},
                         [](size_t sum, char c) { return sum + size_t(c); });
}

// The exit status of a child process that runs `work`.
template <typename Work>
int status_of(Work&& work) {
  const pid_t child = fork();
  if (child == 0) {
    work();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

// Reads beyond the end of a file that was not mapped by MappedFile.
void fault_elsewhere(const fs::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  void* data = ::mmap(nullptr, kPage, PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (data == MAP_FAILED) _exit(3);
  [[maybe_unused]] volatile char byte = *static_cast<volatile char*>(data);
}

}  // namespace

TEST_CASE("a file that is cut while it is read") {
  test::TemporaryDirectory scratch;
  const fs::path path = scratch / "file";
  write_file(path, std::string(10 * kPage, 'x'));
  const MappedFile file(path, ExitCode::model);
  CHECK(fault_of(file) == "no error");
  cut(path, 3 * kPage);
  CHECK(sum_of(file.text()) == 3 * kPage * 'x');  // zeros behind the new end
  CHECK(fault_of(file) == concat("4: ", path.string(), ": became shorter while it was read, from ",
                                 10 * kPage, " bytes to ", 3 * kPage));
}

TEST_CASE("truncation is found even if no page is missing or nothing was read") {
  test::TemporaryDirectory scratch;
  const fs::path path = scratch / "file";
  write_file(path, std::string(kPage + 100, 'x'));
  const MappedFile file(path);
  cut(path, kPage + 99);
  CHECK(sum_of(file.text()) == (kPage + 99) * 'x');
  CHECK(fault_of(file).starts_with("3: " + path.string() + ": became shorter while it was read"));
}

TEST_CASE("a cut that was read stays an error when the file has grown again") {
  test::TemporaryDirectory scratch;
  const fs::path path = scratch / "file";
  write_file(path, std::string(2 * kPage, 'x'));
  const MappedFile file(path);
  cut(path, 0);
  CHECK(sum_of(file.text()) == 0);
  cut(path, 4 * kPage);
  CHECK(fault_of(file) == "3: " + path.string() +
                              ": a part of it could not be read: the disk failed, or the file was "
                              "cut meanwhile");
}

TEST_CASE("a file that grows or is replaced counts as it was opened") {
  test::TemporaryDirectory scratch;
  const fs::path path = scratch / "file";
  write_file(path, "first");
  const MappedFile file(path);
  cut(path, 2 * kPage);
  CHECK(file.text() == "first");
  CHECK(fault_of(file) == "no error");
  write_file(path, "");  // another file of that name
  CHECK(file.text() == "first");
  CHECK(fault_of(file) == "no error");
}

TEST_CASE("every thread survives a cut") {
  test::TemporaryDirectory scratch;
  const fs::path path = scratch / "file";
  constexpr int64_t kPages = 64;
  write_file(path, std::string(size_t(kPages) * kPage, 'x'));
  set_threads(4);
  for (int time = 0; time < 20; ++time) {
    cut(path, kPages * kPage);
    const MappedFile file(path);
    cut(path, 5 * kPage);
    std::atomic<int64_t> sum = 0;
    std::thread other([&] { sum += int64_t(sum_of(file.text())); });
    parallel_for(kPages, [&](int64_t page) {
      sum += int64_t(sum_of(file.text().substr(size_t(page) * kPage, kPage)));
    });
    other.join();
    CHECK(sum <= 2 * kPages * int64_t(kPage) * 'x');
    CHECK(fault_of(file) != "no error");
  }
  set_threads(available_cores());
}

TEST_CASE("creating and removing mappings does not disturb a faulting one") {
  test::TemporaryDirectory scratch;
  write_file(scratch / "file", std::string(20 * kPage, 'x'));
  write_file(scratch / "other", std::string(7 * kPage, 'y'));
  std::atomic<bool> done = false;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      while (!done) {
        const MappedFile one(scratch / "other"), two(scratch / "other");
        wrong += sum_of(two.text()) != 7 * kPage * 'y' || fault_of(one) != "no error";
      }
    });
  }
  for (int time = 0; time < 100; ++time) {
    cut(scratch / "file", 20 * kPage);
    MappedFile file(scratch / "file");
    cut(scratch / "file", kPage);
    const MappedFile moved = std::move(file);
    wrong += sum_of(moved.text()) != kPage * 'x';
    wrong += fault_of(moved) == "no error";
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("read_intact reports the truncation before errors that it caused") {
  test::TemporaryDirectory scratch;
  const fs::path path = scratch / "file";
  write_file(path, std::string(4 * kPage, 'x'));
  const MappedFile file(path);
  auto complain = [&] { throw data_error("line 3 is wrong"); };
  CHECK(failure_of([&] { file.read_intact(complain); }) == "3: line 3 is wrong");
  cut(path, kPage);
  const std::string shorter = "3: " + path.string() + ": became shorter";
  CHECK(failure_of([&] { file.read_intact(complain); }).starts_with(shorter));
  CHECK(failure_of([&] { file.read_intact([] {}); }).starts_with(shorter));
}

TEST_CASE("faults outside of mapped files have their previous effect") {
  test::TemporaryDirectory scratch;
  write_file(scratch / "file", "mapped");
  write_file(scratch / "empty", "");
  const int killed = status_of([&] {
    ::signal(SIGBUS, SIG_DFL);
    const MappedFile file(scratch / "file");
    fault_elsewhere(scratch / "empty");
  });
  CHECK(WIFSIGNALED(killed));
  CHECK(WTERMSIG(killed) == SIGBUS);
  const int handled = status_of([&] {
    ::signal(SIGBUS, [](int) { _exit(7); });
    const MappedFile file(scratch / "file");
    fault_elsewhere(scratch / "empty");
  });
  CHECK(WIFEXITED(handled));
  CHECK(WEXITSTATUS(handled) == 7);
  const int sent = status_of([&] {
    ::signal(SIGBUS, SIG_DFL);
    const MappedFile file(scratch / "file");
    ::kill(::getpid(), SIGBUS);
  });
  CHECK(WIFSIGNALED(sent));
  CHECK(WTERMSIG(sent) == SIGBUS);
}

TEST_CASE("the guard survives a library that takes the signal") {
  test::TemporaryDirectory scratch;
  write_file(scratch / "file", std::string(2 * kPage, 'x'));
  const int status = status_of([&] {
    { const MappedFile first(scratch / "file"); }
    ::signal(SIGBUS, [](int) { _exit(7); });
    const MappedFile file(scratch / "file");
    if (::truncate((scratch / "file").c_str(), 0) != 0) _exit(3);
    if (sum_of(file.text()) != 0) _exit(4);
    try {
      file.check_intact();
    } catch (const Error&) {
      _exit(42);
    }
  });
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 42);
}

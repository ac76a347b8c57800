// Signals remove unfinished files, and unfinished directories with what is in them.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "core/files/directory_replacement.h"
#include "core/files/files.h"
#include "core/files/unfinished_files.h"
#include "temporary_directory.h"

using namespace finetune;

namespace {

constexpr DirectoryKind kAny{"a directory", [](std::string_view) { return true; }, "last",
                             [](const fs::path&) { return true; }};

// A process that writes a file and a directory, and that this signal ends.
void end_with(int number, const fs::path& scratch) {
  const pid_t child = fork();
  if (child == 0) {
    remove_unfinished_on_signals();
    const AtomicFile file(scratch / "file");
    const DirectoryReplacement directory(scratch / "target", kAny);
    for (const char* name : {"first", "last"}) write_file(directory.path() / name, "text");
    fs::create_directory(directory.path() / "inner");
    write_file(directory.path() / "inner/first", "text");
    const AtomicFile open(directory.path() / "second");
    ::raise(number);
  }
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == number);
}

}  // namespace

TEST_CASE("a signal leaves the old files and nothing else") {
  test::TemporaryDirectory scratch;
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    end_with(number, scratch.path());
    CHECK(scratch.entries() == 0);
  }
  fs::create_directory(scratch / "target");
  end_with(SIGTERM, scratch.path());
  CHECK(fs::is_empty(scratch / "target"));
  write_file(scratch / "target/first", "old");
  end_with(SIGTERM, scratch.path());
  CHECK(read_text_file(scratch / "target/first") == "old");
  CHECK(entry_names(scratch / "target").size() == 1);
  CHECK(scratch.entries() == 1);
}

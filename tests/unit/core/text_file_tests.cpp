// Reading whole texts of bounded size, from files and from shell streams.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "core/files/descriptor.h"
#include "core/files/files.h"
#include "failure_of.h"
#include "temporary_directory.h"

using namespace finetune;
using test::failure_of;

namespace {

// A pipe like that of `<(...)`, whose writer is done.
struct ShellPipe {
  explicit ShellPipe(std::string_view text) {
    int ends[2] = {-1, -1};
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    read_end = Descriptor(ends[0]);
    const Descriptor write_end(ends[1]);
    REQUIRE(write_all(write_end.number(), text));
  }
  fs::path path() const { return concat("/dev/fd/", read_end.number()); }
  Descriptor read_end;
};

}  // namespace

TEST_CASE("files beyond any sense are refused before they are read") {
  test::TemporaryDirectory scratch;
  write_file(scratch / "sparse", "");
  REQUIRE(::truncate((scratch / "sparse").c_str(), off_t{1} << 40) == 0);
  CHECK(failure_of([&] { read_text_file(scratch / "sparse", ExitCode::model); }) ==
        "4: " + (scratch / "sparse").string() +
            ": holds more than 1024 MiB, too much for a file of this kind");
}

TEST_CASE("read_text_file refuses pipes and devices at once") {
  test::TemporaryDirectory scratch;
  REQUIRE(::mkfifo((scratch / "pipe").c_str(), 0600) == 0);
  const std::string pipe = (scratch / "pipe").string() + ": is a pipe, a file is needed";
  CHECK(failure_of([&] { read_text_file(scratch / "pipe"); }) == "3: " + pipe);
  CHECK(failure_of([&] { read_text_input(scratch / "pipe", ExitCode::usage); }) == "2: " + pipe);
  const std::string zero = "2: /dev/zero: is a device, a file is needed";
  CHECK(failure_of([] { read_text_file("/dev/zero", ExitCode::usage); }) == zero);
  CHECK(failure_of([] { read_text_input("/dev/zero", ExitCode::usage); }) == zero);
  const ShellPipe connected("text");
  CHECK(failure_of([&] { read_text_file(connected.path()); }) ==
        "3: " + connected.path().string() + ": is a pipe, a file is needed");
}

TEST_CASE("read_text_input reads streams of the shell") {
  test::TemporaryDirectory scratch;
  write_file(scratch / "file", "text of a file");
  CHECK(read_text_input(scratch / "file", ExitCode::usage) == "text of a file");
  CHECK(read_text_input(ShellPipe("seed = 3\n").path(), ExitCode::usage) == "seed = 3\n");
  CHECK(read_text_input("/dev/null", ExitCode::usage) == "");
}

TEST_CASE("the beginning of a file, if it is one") {
  test::TemporaryDirectory scratch;
  write_file(scratch / "file", "beginning");
  REQUIRE(::mkfifo((scratch / "pipe").c_str(), 0600) == 0);
  CHECK(read_beginning(scratch / "file", 5) == "begin");
  CHECK(read_beginning(scratch / "file", 500) == "beginning");
  for (const fs::path& path : {scratch / "pipe", scratch / "nothing", scratch.path()}) {
    CHECK(read_beginning(path, 5) == "");
  }
  // A file that cannot be read is an error, not a file with another beginning.
  CHECK_THROWS_WITH_AS(read_beginning("/proc/self/mem", 5), "/proc/self/mem: Input/output error",
                       Error);
}

TEST_CASE("a byte order mark is not part of a text") {
  test::TemporaryDirectory scratch;
  write_file(scratch / "file", "\xEF\xBB\xBF{}");
  CHECK(read_text_file(scratch / "file") == "{}");
  CHECK(read_text_input(scratch / "file", ExitCode::usage) == "{}");
  const ShellPipe connected("\xEF\xBB\xBFtext");
  CHECK(read_text_input(connected.path(), ExitCode::usage) == "text");
}

// Paths of every kind: recognised at once, and refused in a short line.
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "core/files/descriptor.h"
#include "core/files/files.h"
#include "failure_of.h"
#include "temporary_directory.h"

using namespace finetune;
using test::failure_of;

namespace {

FileKind kind(const fs::path& path) {
  return kind_of(path, ExitCode::model);
}

void make_pipe(const fs::path& path) {
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
}

void make_socket(const fs::path& path) {
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.string().copy(address.sun_path, sizeof address.sun_path - 1);
  REQUIRE(::bind(socket.number(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
}

std::string refusal(const fs::path& path) {
  return failure_of([&] { open_file(path, ExitCode::model); });
}

}  // namespace

TEST_CASE("kinds of paths") {
  test::TemporaryDirectory scratch;
  write_file(scratch / "file", "text");
  make_pipe(scratch / "pipe");
  make_socket(scratch / "socket");
  fs::create_symlink("file", scratch / "link");
  fs::create_symlink("nothing", scratch / "dangling");
  CHECK(kind(scratch / "file") == FileKind::file);
  CHECK(kind(scratch / "link") == FileKind::file);
  CHECK(kind(scratch.path()) == FileKind::directory);
  CHECK(kind(scratch / "pipe") == FileKind::pipe);
  CHECK(kind(scratch / "socket") == FileKind::socket);
  CHECK(kind("/dev/zero") == FileKind::device);
  for (const char* name : {"nothing", "dangling", "file/inside"}) {
    CHECK(kind(scratch / name) == FileKind::absent);
    CHECK_FALSE(path_exists(scratch / name, ExitCode::model));
  }
  CHECK(path_exists(scratch / "pipe", ExitCode::model));
  CHECK(directory_exists(scratch.path(), ExitCode::model));
  CHECK_FALSE(directory_exists(scratch / "file", ExitCode::model));
  CHECK(file_bytes(scratch / "link", ExitCode::model) == 4);
}

TEST_CASE("paths that cannot be followed are errors, not absent files") {
  test::TemporaryDirectory scratch;
  fs::create_symlink("loop", scratch / "loop");
  const std::string loop = (scratch / "loop").string();
  const std::string circle = ": Too many levels of symbolic links";
  CHECK(failure_of([&] { path_exists(loop, ExitCode::data); }) == "3: " + loop + circle);
  CHECK(failure_of([&] { path_exists(loop + "/x", ExitCode::model); }) ==
        "4: " + loop + "/x" + circle);
  for (const std::string& longest : {std::string(256, 'n'), std::string(100'000, 'n')}) {
    const std::string error = failure_of([&] { kind(scratch / longest); });
    CHECK(error.starts_with("4: " + scratch.path().string() + "/nnn"));
    CHECK(error.ends_with("nnn: File name too long"));
    CHECK(error.size() < 400);
  }
}

TEST_CASE("a folder that may not be searched is an error") {
  if (::geteuid() != 0) return;  // needs another user
  test::TemporaryDirectory scratch;
  fs::create_directory(scratch / "closed");
  write_file(scratch / "closed/file", "x");
  ::chmod((scratch / "closed").c_str(), 0700);
  ::chmod(scratch.path().c_str(), 0755);
  REQUIRE(::seteuid(65534) == 0);
  const std::string error =
      failure_of([&] { path_exists(scratch / "closed/file", ExitCode::data); });
  REQUIRE(::seteuid(0) == 0);
  CHECK(error == "3: " + (scratch / "closed/file").string() + ": Permission denied");
}

TEST_CASE("only files are opened, and nothing is waited for") {
  test::TemporaryDirectory scratch;
  write_file(scratch / "file", "text");
  make_pipe(scratch / "pipe");
  make_socket(scratch / "socket");
  CHECK(open_file(scratch / "file", ExitCode::model).number() >= 0);
  auto at = [&](const char* name) { return "4: " + (scratch / name).string(); };
  CHECK(refusal(scratch / "pipe") == at("pipe") + ": is a pipe, a file is needed");
  CHECK(refusal(scratch / "socket") == at("socket") + ": is a socket, a file is needed");
  CHECK(refusal(scratch / "nothing") == at("nothing") + ": No such file or directory");
  CHECK(refusal("/dev/zero") == "4: /dev/zero: is a device, a file is needed");
  CHECK(refusal(scratch.path()) ==
        "4: " + scratch.path().string() + ": is a directory, a file is needed");
}

TEST_CASE("devices that are read like pipes") {
  const std::string refused = "3: /dev/full: is a device, a file is needed";
  CHECK(failure_of([] { require_readable("/dev/full"); }) == refused);
  CHECK(failure_of([] { require_readable("/dev/null"); }) == "no error");
}

TEST_CASE("paths in messages") {
  CHECK(printable_path("a b/ü.txt") == "a b/ü.txt");
  CHECK(printable_path("a\x1b[31m\n.txt") == "a\\x1b[31m\\n.txt");
  const std::string name = "/begin/" + std::string(5000, 'x') + "/end";
  const std::string short_name = printable_path(name);
  CHECK(short_name.size() < 250);
  CHECK(short_name.starts_with("/begin/xxx"));
  CHECK(short_name.ends_with("xxx/end"));
  std::string accents;
  for (int i = 0; i < 1000; ++i) accents += "é";
  CHECK(invalid_utf8(printable_path(accents)) == std::string::npos);
}

TEST_CASE("a disk that fails, or a limit, is not a mistake of the command line") {
  for (ExitCode code : {ExitCode::usage, ExitCode::data, ExitCode::model}) {
    for (int error : {EMFILE, ENFILE, ENOMEM}) {
      CHECK(system_failure("d.csv", error, code).code() == ExitCode::device);
      CHECK(write_failure("out.csv", error).code() == ExitCode::device);
    }
  }
  CHECK(system_failure("grid.toml", EIO, ExitCode::usage).code() == ExitCode::model);
  CHECK(system_failure("d.csv", EIO, ExitCode::data).code() == ExitCode::data);
  CHECK(std::string(system_failure("d.csv", EMFILE, ExitCode::data).what())
            .ends_with("(see ulimit -n)"));
  CHECK(write_failure("out.csv", EMFILE).what() ==
        std::string("out.csv: cannot be written: Too many open files (see ulimit -n)"));
  for (int error : {ENOSPC, EIO, EACCES}) {
    CHECK(write_failure("out.csv", error).code() == ExitCode::model);
  }
  for (int error : {ENOENT, EACCES, ELOOP}) {
    CHECK(system_failure("grid.toml", error, ExitCode::usage).code() == ExitCode::usage);
  }
}

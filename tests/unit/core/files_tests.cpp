// Atomic files, mapped files, SHA-256 and free space.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <set>
#include <string>

#include "core/files/descriptor.h"
#include "core/files/files.h"
#include "core/files/temporary_name.h"
#include "core/log.h"
#include "core/sha256.h"
#include "error_line.h"
#include "temporary_directory.h"

using namespace finetune;

using test::error_line;
using test::TemporaryDirectory;

TEST_CASE("AtomicFile appears whole on commit") {
  TemporaryDirectory scratch;
  fs::path path = scratch / "file";
  std::string large(3 << 20, 'x');  // more than the buffer
  {
    AtomicFile file(path);
    file.write("begin ");
    file.write(large);
    CHECK_FALSE(fs::exists(path));
    file.commit();
  }
  CHECK(read_text_file(path) == "begin " + large);
  CHECK(scratch.entries() == 1);
  write_file(path, "new");
  CHECK(read_text_file(path) == "new");
  CHECK(scratch.entries() == 1);
}

TEST_CASE("AtomicFile leaves nothing, and the old file as it was, without commit") {
  TemporaryDirectory scratch;
  fs::path path = scratch / "file";
  write_file(path, "old");
  try {
    AtomicFile file(path);
    file.write(std::string(2 << 20, 'x'));
    throw std::runtime_error("in the middle");
  } catch (const std::runtime_error&) {
  }
  CHECK(read_text_file(path) == "old");
  CHECK(scratch.entries() == 1);
}

TEST_CASE("AtomicFile that cannot be renamed leaves nothing") {
  TemporaryDirectory scratch;
  fs::path path = scratch / "taken";
  fs::create_directory(path);
  {
    AtomicFile file(path);
    file.write("x");
    CHECK_THROWS_AS(file.commit(), Error);
  }
  CHECK(scratch.entries() == 1);
  CHECK_THROWS_AS(AtomicFile(scratch / "absent" / "file"), Error);
}

TEST_CASE("temporary names cannot be guessed, and are known again") {
  const fs::path target = "runs/a/metrics.json";
  std::set<std::string> names;
  for (int i = 0; i < 100; ++i) names.insert(temporary_name(target).string());
  CHECK(names.size() == 100);
  for (const std::string& name : names) {
    CHECK(fs::path(name).parent_path() == "runs/a");
    const std::string last = fs::path(name).filename();
    CHECK(last.size() == std::string("metrics.json.tmp.0123456789abcdef").size());
    CHECK(is_temporary_of(last, target));
    CHECK_FALSE(is_temporary_of(last, "runs/a/metrics"));
    CHECK_FALSE(is_temporary_of(last, target, ".old."));
    CHECK(without_temporary_suffix(last) == "metrics.json");
  }
  CHECK(without_temporary_suffix("a.tmp.4711") == "a");  // of earlier versions
  CHECK_FALSE(is_temporary_of("a.tmp.4711", "a"));
  for (const char* name : {"a", "a.tmp", "a.tmp.", "a.tmp.0123456789abcdeg", "a.tmp.abcdef",
                           "a.tmp.0123456789abcdef0", "a.tmp.0123456789abcdef.txt"}) {
    CAPTURE(name);
    CHECK(without_temporary_suffix(name) == name);
    CHECK_FALSE(is_temporary_of(name, "a"));
  }
}

TEST_CASE("a file name without room for a suffix can be written") {
  TemporaryDirectory scratch;
  const fs::path path = scratch / std::string(255, 'n');
  write_file(path, "text");
  CHECK(read_text_file(path) == "text");
  CHECK(is_temporary_of(temporary_name(path).filename().string(), path));
  CHECK(scratch.entries() == 1);
}

TEST_CASE("a link at a temporary file's place is never followed") {
  TemporaryDirectory scratch;
  const fs::path victim = scratch / "victim";
  write_file(victim, "precious");
  const fs::path path = scratch / "file";
  for (const std::string& suffix : {concat(int64_t(::getpid())), std::string(16, '0')}) {
    fs::create_symlink(victim, concat(path.string(), ".tmp.", suffix));
  }
  AtomicFile file(path);
  CHECK_FALSE(fs::is_symlink(file.temporary()));
  file.write("text");
  file.commit();
  CHECK(read_text_file(path) == "text");
  CHECK(read_text_file(victim) == "precious");
}

TEST_CASE("files that belong together are complete before the first one is renamed") {
  TemporaryDirectory scratch;
  AtomicFile first(scratch / "first"), second(scratch / "second");
  first.write("1");
  second.write("2");
  first.complete();
  second.complete();
  CHECK_FALSE(fs::exists(scratch / "first"));
  CHECK(read_text_file(first.temporary()) == "1");
  first.commit();
  second.commit();
  CHECK(read_text_file(scratch / "second") == "2");
  CHECK(scratch.entries() == 2);
}

TEST_CASE("a file that cannot be written whole leaves the old one") {
  TemporaryDirectory scratch;
  const fs::path path = scratch / "file";
  write_file(path, "old");
  const pid_t child = fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1 << 16, 1 << 16};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      write_file(path, std::string(1 << 20, 'x'));
    } catch (const Error& error) {
      ::_exit(int(error.code()));
    }
    ::_exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == int(ExitCode::model));
  CHECK(read_text_file(path) == "old");
  CHECK(scratch.entries() == 1);
}

TEST_CASE("only files that killed writers left are removed") {
  TemporaryDirectory scratch;
  const fs::path path = scratch / "answers.json";
  fs::path dead, other;
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t child = fork();
  if (child == 0) {
    AtomicFile file(path), other_file(scratch / "labels.csv");
    const std::string names =
        concat(file.temporary().string(), "\n", other_file.temporary().string());
    if (!write_all(ready[1], names)) ::_exit(1);
    ::raise(SIGKILL);
  }
  ::close(ready[1]);
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(WIFSIGNALED(status));
  char names[4096];
  const ssize_t count = ::read(ready[0], names, sizeof names);
  ::close(ready[0]);
  REQUIRE(count > 0);
  const std::string both(names, size_t(count));
  dead = both.substr(0, both.find('\n'));
  other = both.substr(both.find('\n') + 1);
  REQUIRE(fs::exists(dead));
  REQUIRE(fs::exists(other));

  AtomicFile living(path);
  write_file(scratch / "answers.json.tmp.12", "a user's");
  fs::create_symlink("answers.json.tmp.12", scratch / "answers.json.tmp.0123456789abcdef");
  remove_abandoned_files(path);
  CHECK_FALSE(fs::exists(dead));
  CHECK(fs::exists(other));
  CHECK(fs::exists(living.temporary()));
  CHECK(scratch.entries() == 4);
  living.write("text");
  living.commit();
  CHECK(read_text_file(path) == "text");
}

TEST_CASE("a log is never written through a link") {
  TemporaryDirectory scratch;
  const fs::path victim = scratch / "victim", log = scratch / "log.txt";
  write_file(victim, "precious");
  fs::create_symlink(victim, log);
  for (bool fresh : {false, true}) {
    CHECK_THROWS_WITH_AS(open_for_appending(log, fresh), doctest::Contains("is a symbolic link"),
                         Error);
  }
  CHECK_THROWS_WITH_AS(open_log_file(log), doctest::Contains("is a symbolic link"), Error);
  CHECK(read_text_file(victim) == "precious");
  fs::remove(log);
  fs::create_symlink(scratch / "absent", log);
  CHECK_THROWS_AS(open_for_appending(log, false), Error);
  CHECK_FALSE(fs::exists(scratch / "absent"));
  fs::remove(log);
  REQUIRE(::mkfifo(log.c_str(), 0600) == 0);  // no reader: opening it would wait forever
  CHECK_THROWS_WITH_AS(open_for_appending(log, false), doctest::Contains("is not a file"), Error);
  fs::remove(log);
  fs::create_directory(log);
  CHECK_THROWS_AS(open_for_appending(log, false), Error);
  fs::remove(log);
  for (const char* expected : {"one\n", "one\none\n"}) {
    const Descriptor file(open_for_appending(log, false));
    REQUIRE(write_all(file.number(), "one\n"));
    CHECK(read_text_file(log) == expected);
  }
  const Descriptor fresh(open_for_appending(log, true));
  CHECK(read_text_file(log) == "");
}

TEST_CASE("MappedFile and read_text_file name the fault") {
  TemporaryDirectory scratch;
  fs::path absent = scratch / "absent";
  CHECK(error_line(ExitCode::data, [&] { const MappedFile file(absent); }) ==
        absent.string() + ": No such file or directory");
  CHECK(error_line(ExitCode::model, [&] {
          const MappedFile file(scratch.path(), ExitCode::model);
        }) == scratch.path().string() + ": is a directory, a file is needed");
  CHECK_THROWS_WITH_AS(read_text_file(scratch.path()),
                       (scratch.path().string() + ": is a directory, a file is needed").c_str(),
                       Error);
  write_file(absent, "");
  CHECK(MappedFile(absent).size() == 0);
  CHECK(MappedFile(absent).text() == "");
  write_file(absent, "text");
  MappedFile first(absent);
  MappedFile second(std::move(first));
  CHECK(second.text() == "text");
}

TEST_CASE("sha256 gives the published digests") {  // FIPS 180-4 examples
  CHECK(sha256_of("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256_of("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  Sha256 pieces;
  pieces.update("abcdbcdecdefdefgefghfghi");
  pieces.update("ghijhijkijkljklmklmnlmnomnopnopq");
  CHECK(pieces.hex() == "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  TemporaryDirectory scratch;
  write_file(scratch / "file", "abc");
  CHECK(sha256_of_file(scratch / "file") == sha256_of("abc"));
}

TEST_CASE("require_free_space refuses files that cannot fit") {
  TemporaryDirectory scratch;
  require_free_space(scratch.path(), 1, "a byte");
  CHECK_THROWS_AS(require_free_space(scratch.path(), uint64_t{1} << 62, "a checkpoint"), Error);
}

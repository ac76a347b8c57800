// Directories are replaced as a whole or not at all, and leftovers of a kill are repaired.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/files/directory_replacement.h"
#include "core/files/files.h"
#include "core/files/output_directory.h"
#include "core/files/temporary_name.h"
#include "error_line.h"
#include "temporary_directory.h"

using namespace finetune;

namespace {

using Names = std::vector<std::string>;

bool is_part(std::string_view name) {
  return name == "first" || name == "second" || name == "last";
}

bool has_mark(const fs::path& directory) {
  return fs::exists(directory / "last") && read_text_file(directory / "last").starts_with("ours");
}

constexpr DirectoryKind kParts{"parts that finetune wrote", is_part, "last", has_mark};

Names sorted_names(const fs::path& directory) {
  Names names = entry_names(directory);
  std::sort(names.begin(), names.end());
  return names;
}

void write_parts(const fs::path& directory, const std::string& text) {
  fs::create_directories(directory);
  for (const char* name : {"last", "first"}) write_file(directory / name, "ours, " + text);
}

void replace(const fs::path& target, const std::string& text) {
  DirectoryReplacement output(target, kParts);
  write_parts(output.path(), text);
  output.commit();
}

std::string text_of(const fs::path& directory) {
  const std::string first = read_text_file(directory / "first");
  CHECK(first == read_text_file(directory / "last"));
  return first.substr(first.find(' ') + 1);
}

// Ends like a killed process.
void killed(const fs::path& target, bool move_first) {
  const pid_t child = fork();
  if (child == 0) {
    DirectoryReplacement output(target, kParts);
    write_parts(output.path(), "killed");
    if (move_first) fs::rename(output.path() / "first", target / "first");
    ::raise(SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(WIFSIGNALED(status));
}

int code_of(const fs::path& output, bool overwrite) {
  try {
    check_output_directory(output, overwrite, kParts);
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find(output.string()) != std::string::npos);
    return int(error.code());
  }
  return 0;
}

std::string refusal_of(const fs::path& output) {
  return test::error_line(ExitCode::usage, [&] { check_output_directory(output, true, kParts); });
}

}  // namespace

TEST_CASE("errors of writing name the directory that is to be, not the temporary one") {
  test::TemporaryDirectory scratch;
  const fs::path target = scratch / "target";
  const DirectoryReplacement output(target, kParts);
  auto write_to_absent = [&] { write_file(output.path() / "absent" / "first", "text"); };
  const std::string told = concat((target / "absent/first").string(), ": cannot be written: ");
  CHECK_THROWS_WITH_AS(output.fill(write_to_absent), doctest::Contains(told.c_str()), Error);
  CHECK_THROWS_WITH_AS(output.fill([] { throw data_error("of the data"); }), "of the data", Error);
}

TEST_CASE("a directory is listed only if that is possible") {
  test::TemporaryDirectory scratch;
  CHECK(entries_of(scratch / "absent").empty());
  write_file(scratch / "file", "text");
  CHECK(entries_of(scratch / "file").empty());
  CHECK(entries_of(scratch.path()) == std::vector<fs::path>{scratch / "file"});
}

TEST_CASE("a directory takes its place whole, and nothing else is left") {
  test::TemporaryDirectory scratch;
  for (const char* name : {"new", "deep/er/new", "slash/", "dot/."}) {
    CAPTURE(name);
    const fs::path target = scratch / name;
    for (const char* text : {"one", "two"}) {
      replace(target, text);
      CHECK(text_of(target) == text);
      CHECK(sorted_names(target) == Names{"first", "last"});
    }
  }
  CHECK(sorted_names(scratch.path()) == Names{"deep", "dot", "new", "slash"});
}

TEST_CASE("without commit the old directory is as it was") {
  test::TemporaryDirectory scratch;
  const fs::path target = scratch / "target";
  auto abandon = [&] {
    DirectoryReplacement output(target, kParts);
    write_parts(output.path(), "new");
    AtomicFile open(output.path() / "second");
    throw std::runtime_error("in the middle");
  };
  CHECK_THROWS_AS(abandon(), std::runtime_error);
  CHECK(scratch.entries() == 0);
  fs::create_directory(target);
  CHECK_THROWS_AS(abandon(), std::runtime_error);
  CHECK(fs::is_empty(target));
  write_parts(target, "old");
  CHECK_THROWS_AS(abandon(), std::runtime_error);
  CHECK(text_of(target) == "old");
  CHECK(scratch.entries() == 1);
}

TEST_CASE("an empty directory is filled, and stays the one it is") {
  test::TemporaryDirectory scratch;
  const fs::path target = scratch / "target", link = scratch / "link";
  fs::create_directory(target);
  REQUIRE(::chmod(target.c_str(), 0711) == 0);
  struct stat before {
  }, after{};
  REQUIRE(::stat(target.c_str(), &before) == 0);
  fs::create_directory_symlink("target", link);
  replace(link, "new");
  REQUIRE(::stat(target.c_str(), &after) == 0);
  CHECK(before.st_ino == after.st_ino);
  CHECK(before.st_mode == after.st_mode);
  CHECK(fs::is_symlink(link));
  CHECK(text_of(target) == "new");
  CHECK(scratch.entries() == 2);
}

TEST_CASE("an empty target that another program fills meanwhile is not touched") {
  test::TemporaryDirectory scratch;
  const fs::path target = scratch / "target";
  fs::create_directory(target);
  {
    DirectoryReplacement output(target, kParts);
    write_parts(output.path(), "new");
    write_file(target / "first", "another's");
    CHECK_THROWS_WITH_AS(output.commit(), doctest::Contains("no longer empty"), Error);
  }
  CHECK(sorted_names(target) == Names{"first"});
  CHECK(read_text_file(target / "first") == "another's");
}

TEST_CASE("a target that appears meanwhile is not replaced") {
  test::TemporaryDirectory scratch;
  const fs::path target = scratch / "target";
  {
    DirectoryReplacement output(target, kParts);
    write_parts(output.path(), "new");
    write_parts(target, "another's");
    CHECK_THROWS_AS(output.commit(), Error);
  }
  CHECK(text_of(target) == "another's");
  CHECK(scratch.entries() == 1);
}

TEST_CASE("files of others are kept, and no link is followed") {
  test::TemporaryDirectory scratch;
  const fs::path target = scratch / "target", elsewhere = scratch / "elsewhere";
  write_parts(target, "old");
  write_parts(elsewhere, "precious");
  fs::create_directories(target / "notes");
  write_file(target / "notes/today", "mine");
  write_file(target / "README.md", "mine");
  fs::create_symlink(elsewhere / "first", target / "second");
  replace(target, "new");
  CHECK(text_of(target) == "new");
  CHECK(sorted_names(target) == Names{"README.md", "first", "last", "notes"});
  CHECK(read_text_file(target / "notes/today") == "mine");
  // If the target is a link, the link is replaced and its destination stays.
  const fs::path link = scratch / "link";
  fs::create_directory_symlink(elsewhere, link);
  replace(link, "new");
  CHECK_FALSE(fs::is_symlink(link));
  CHECK(text_of(link) == "new");
  CHECK(text_of(elsewhere) == "precious");
  CHECK(scratch.entries() == 3);
}

TEST_CASE("a new directory has the rights of the old one") {
  test::TemporaryDirectory scratch;
  const fs::path target = scratch / "target";
  write_parts(target, "old");
  REQUIRE(::chmod(target.c_str(), 0700) == 0);
  DirectoryReplacement output(target, kParts);
  struct stat info {};
  REQUIRE(::stat(output.path().c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0700);  // also while it is written
  write_parts(output.path(), "new");
  output.commit();
  REQUIRE(::stat(target.c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0700);
}

TEST_CASE("the next writer removes a killed writer's directory, not a living one's") {
  test::TemporaryDirectory scratch;
  const fs::path target = scratch / "target", empty = scratch / "empty";
  write_parts(target, "old");
  killed(target, false);
  fs::create_directory(empty);
  killed(empty, false);
  CHECK(sorted_names(scratch.path()).size() == 3);
  CHECK(sorted_names(empty).size() == 1);
  CHECK(code_of(empty, false) == 0);
  CHECK(fs::is_empty(empty));
  // Directories of other names, and files, are not leftovers.
  write_parts(scratch / "target.tmp.12", "mine");
  write_parts(scratch / "other.tmp.0123456789abcdef", "mine");
  write_file(scratch / "target.tmp.fedcba9876543210", "mine");
  DirectoryReplacement living(target, kParts);
  write_parts(living.path(), "living");
  replace(target, "new");
  CHECK(text_of(target) == "new");
  CHECK(text_of(living.path()) == "living");
  Names expected{"empty",         "other.tmp.0123456789abcdef",  "target",
                 "target.tmp.12", "target.tmp.fedcba9876543210", living.path().filename().string()};
  std::sort(expected.begin(), expected.end());
  CHECK(sorted_names(scratch.path()) == expected);
  living.commit();
  CHECK(text_of(target) == "living");
}

TEST_CASE("killed after the exchange: files of others return to their directory") {
  test::TemporaryDirectory scratch;
  const fs::path target = scratch / "target";
  write_parts(target, "new");
  const fs::path old = temporary_name(target);
  write_parts(old, "old");
  write_file(old / "README.md", "mine");
  recover_directory(target, kParts);
  CHECK(text_of(target) == "new");
  CHECK(read_text_file(target / "README.md") == "mine");
  CHECK(scratch.entries() == 1);
}

TEST_CASE("leftovers of another kind are left to their own writer") {
  test::TemporaryDirectory scratch;
  const fs::path target = scratch / "target", other = temporary_name(target);
  write_parts(target, "old");
  fs::create_directory(other);
  write_file(other / "model.safetensors", "half");
  write_file(other / "first", "half");
  recover_directory(target, kParts);
  CHECK(sorted_names(target) == Names{"first", "last"});
  CHECK(sorted_names(other) == Names{"first", "model.safetensors"});
}

TEST_CASE("killed while an empty directory was filled: it is empty again") {
  test::TemporaryDirectory scratch;
  const fs::path target = scratch / "target";
  fs::create_directory(target);
  killed(target, true);
  CHECK(sorted_names(target).size() == 2);
  CHECK(code_of(target, false) == 0);
  CHECK(fs::is_empty(target));
  replace(target, "new");
  CHECK(text_of(target) == "new");
}

TEST_CASE("an exchange step by step, and one that was cut in the middle") {
  test::TemporaryDirectory scratch;
  const fs::path target = scratch / "target", other = scratch / "other";
  write_parts(target, "old");
  write_parts(other, "new");
  CHECK(exchange_step_by_step(other, target) == other);
  CHECK(text_of(target) == "new");
  CHECK(text_of(other) == "old");
  CHECK_THROWS_AS(exchange_step_by_step(scratch / "absent", target), Error);
  CHECK(text_of(target) == "new");
  CHECK(scratch.entries() == 2);
  fs::remove_all(other);

  fs::rename(target, temporary_name(target, ".old."));
  CHECK(code_of(target, false) == int(ExitCode::usage));  // it existed all the time
  CHECK(text_of(target) == "new");
  write_parts(temporary_name(target, ".old."), "older");
  recover_directory(target, kParts);
  CHECK(text_of(target) == "new");
  CHECK(scratch.entries() == 1);
}

TEST_CASE("a replacement killed at any moment leaves the old directory or the new one") {
  test::TemporaryDirectory scratch;
  const fs::path target = scratch / "target";
  replace(target, "0");
  for (int round = 0; round < 10; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      for (int i = 1;; ++i) replace(target, concat(i));
    }
    ::usleep(useconds_t(1000 + 3001 * round));
    ::kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    text_of(target);
    recover_directory(target, kParts);
    CHECK(sorted_names(scratch.path()) == Names{"target"});
  }
}

TEST_CASE("which directories may be written, and which --overwrite replaces") {
  test::TemporaryDirectory scratch;
  const fs::path target = scratch / "target";
  for (bool overwrite : {false, true}) {
    CHECK(code_of(target, overwrite) == 0);
    CHECK(code_of(target / "a/b", overwrite) == 0);
    CHECK(code_of(scratch.path(), overwrite) == 0);
  }
  write_parts(target, "old");
  write_file(target / "second.tmp.12", "half");
  CHECK(code_of(target, false) == int(ExitCode::usage));
  CHECK(code_of(target, true) == 0);
  CHECK(code_of(target / "", true) == 0);
  write_file(scratch / "file", "x");
  CHECK(code_of(scratch / "file", true) == int(ExitCode::usage));
  CHECK(code_of(scratch / "file/output", true) == int(ExitCode::model));
  {
    fs::create_directory(scratch / "busy");
    const DirectoryReplacement living(scratch / "busy", kParts);
    CHECK(refusal_of(scratch / "busy").find("another process") != std::string::npos);
  }
}

TEST_CASE("places that --overwrite never replaces") {
  test::TemporaryDirectory scratch;
  const fs::path target = scratch / "target";
  auto refused = [&](const fs::path& path, const std::string& why) {
    const std::string refusal = refusal_of(path);
    CHECK_MESSAGE(refusal.find(why) != std::string::npos, refusal);
  };
  refused("/", "the root of the file system");
  write_parts(target, "old");
  const std::string home = std::getenv("HOME") ? std::getenv("HOME") : "";
  ::setenv("HOME", target.c_str(), 1);
  refused(target, "your home directory");
  ::setenv("HOME", home.c_str(), 1);

  const fs::path before = fs::current_path();
  fs::current_path(target);
  refused(target, "working directory");
  refused(".", "working directory");
  fs::create_directory(target / "deeper");
  fs::current_path(target / "deeper");
  refused("..", "working directory");
  fs::current_path(before);
  refused(target, "holds 'deeper'");
  fs::remove(target / "deeper");

  fs::create_directory(target / ".git");
  refused(target, "a repository");
  fs::remove(target / ".git");
  fs::create_directory_symlink(target, scratch / "link");
  for (const char* link : {"link", "link/"}) refused(scratch / link, "symbolic link");
  fs::create_directory_symlink(scratch / "absent", scratch / "dangling");
  refused(scratch / "dangling", "symbolic link to no directory");
  fs::create_symlink("circle", scratch / "circle");
  CHECK(code_of(scratch / "circle", true) == int(ExitCode::model));  // unknown kind
  write_file(target / "a\nb", "mine");
  refused(target, "holds 'a\\nb'");
  fs::remove(target / "a\nb");
  fs::create_symlink("first", target / "second");
  refused(target, "holds 'second'");
  fs::remove(target / "second");
  write_file(target / "last", "another's");
  refused(target, "is not parts that finetune wrote");
  CHECK(read_text_file(target / "first") == "ours, old");
}

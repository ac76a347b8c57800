// Which output directories may be used, and what is removed from them.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "core/error.h"
#include "core/files/files.h"
#include "core/files/output_directory.h"
#include "temporary_directory.h"
#include "train/run/run_directory.h"

using namespace finetune;

namespace {

int code_of(const fs::path& directory, OutputMode mode) {
  try {
    check_output(directory, mode);
  } catch (const Error& error) {
    return int(error.code());
  }
  return 0;
}

void make_run(const fs::path& directory) {
  fs::create_directories(directory / "checkpoints");
  fs::create_directories(directory / "model");
  write_file(directory / "config.toml", concat("# ", config_marker("0.1.0"), "\nlr = 1.0\n"));
  for (const char* name :
       {"run.json", "metrics.jsonl", "metrics.json", "log.txt", "confusion.csv", "predictions.csv",
        "checkpoints/step-00000010.h5", "checkpoints/step-00000020.h5.tmp.5", "metrics.json.tmp.17",
        "model/config.json", "model/model.safetensors", "model/vocab.txt"}) {
    write_file(directory / name, "x");
  }
}

}  // namespace

TEST_CASE("an output that is absent or empty may be used in every mode") {
  test::TemporaryDirectory directory;
  for (auto mode : {OutputMode::create, OutputMode::overwrite, OutputMode::resume}) {
    CHECK(code_of(directory / "runs/a", mode) == 0);
    CHECK(code_of(directory.path(), mode) == 0);
  }
  CHECK(!fs::exists(directory / "runs"));  // checking changes nothing
  // Killed while the first file was written.
  write_file(directory / "config.toml.tmp.12", "");
  CHECK(code_of(directory.path(), OutputMode::create) == 0);
  RunDirectory run(directory.path(), OutputMode::create);
  CHECK(fs::is_empty(directory.path()));
}

TEST_CASE("a run is continued or replaced only when told to") {
  test::TemporaryDirectory directory;
  make_run(directory.path());
  CHECK(code_of(directory.path(), OutputMode::create) == int(ExitCode::usage));
  CHECK(code_of(directory.path(), OutputMode::resume) == 0);
  CHECK(code_of(directory.path(), OutputMode::overwrite) == 0);
  CHECK_THROWS_WITH_AS(check_output(directory.path(), OutputMode::create),
                       doctest::Contains("--resume continues it, --overwrite replaces it"), Error);
}

TEST_CASE("a stranger's directory is never touched") {
  test::TemporaryDirectory directory;
  write_file(directory / "config.toml", "[package]\nname = \"x\"\n");
  write_file(directory / "log.txt", "mine");
  for (auto mode : {OutputMode::create, OutputMode::overwrite, OutputMode::resume}) {
    CHECK(code_of(directory.path(), mode) == int(ExitCode::usage));
    CHECK_THROWS_AS(RunDirectory(directory.path(), mode), Error);
  }
  CHECK(read_text_file(directory / "log.txt") == "mine");
}

TEST_CASE("--overwrite removes what a run wrote and nothing else") {
  test::TemporaryDirectory directory;
  make_run(directory.path());
  for (const char* name : {"notes.txt", "model/README.md", "checkpoints/best.h5"}) {
    write_file(directory / name, "mine");
  }
  RunDirectory run(directory.path(), OutputMode::overwrite);
  std::vector<std::string> left;
  for (const auto& entry : fs::recursive_directory_iterator(directory.path())) {
    left.push_back(fs::relative(entry.path(), directory.path()).string());
  }
  std::sort(left.begin(), left.end());
  CHECK(left == std::vector<std::string>{"checkpoints", "checkpoints/best.h5", "config.toml",
                                         "model", "model/README.md", "notes.txt"});
}

TEST_CASE("resuming clears away what a killed process left") {
  test::TemporaryDirectory directory;
  make_run(directory.path());
  fs::create_directories(directory / "model.tmp.99");
  write_file(directory / "model.tmp.99/model.safetensors", "half");
  write_file(directory / "data.tmp.5", "mine");
  fs::create_directories(directory / "model.tmp.0123456789abcdef");
  for (const char* name : {"log.txt.tmp.0123456789abcdef", "metrics.json.tmp.fedcba9876543210",
                           "model.tmp.0123456789abcdef/vocab.txt.tmp.0123456789abcdef",
                           "checkpoints/step-00000020.h5.tmp.0123456789abcdef"}) {
    write_file(directory / name, "half");
  }
  RunDirectory run(directory.path(), OutputMode::resume);
  CHECK(!fs::exists(directory / "model.tmp.99"));
  CHECK(!fs::exists(directory / "metrics.json.tmp.17"));
  CHECK(!fs::exists(directory / "checkpoints/step-00000020.h5.tmp.5"));
  for (const auto& entry : fs::recursive_directory_iterator(directory.path())) {
    CHECK_MESSAGE(entry.path().string().find(".tmp.0") == std::string::npos, entry.path().string());
    CHECK_MESSAGE(entry.path().string().find(".tmp.f") == std::string::npos, entry.path().string());
  }
  CHECK(fs::exists(directory / "checkpoints/step-00000010.h5"));
  CHECK(fs::exists(directory / "metrics.jsonl"));
  CHECK(fs::exists(directory / "data.tmp.5"));
}

TEST_CASE("a log that is a link is refused, and removed by --overwrite") {
  test::TemporaryDirectory directory;
  for (const char* name : {"log.txt", "metrics.jsonl"}) {
    CAPTURE(name);
    const fs::path run = directory / concat("run of ", name), victim = directory / "victim";
    make_run(run);
    write_file(victim, "precious");
    fs::remove(run / name);
    fs::create_symlink(victim, run / name);
    CHECK_THROWS_WITH_AS(RunDirectory(run, OutputMode::resume),
                         doctest::Contains("is a symbolic link"), Error);
    RunDirectory again(run, OutputMode::overwrite);
    CHECK_FALSE(fs::is_symlink(run / name));
    CHECK(read_text_file(victim) == "precious");
  }
}

TEST_CASE("--overwrite removes a link to a model, not the model") {
  test::TemporaryDirectory directory;
  make_run(directory / "run");
  fs::rename(directory / "run/model", directory / "elsewhere");
  fs::create_directory_symlink(directory / "elsewhere", directory / "run/model");
  RunDirectory run(directory / "run", OutputMode::overwrite);
  CHECK_FALSE(fs::exists(fs::symlink_status(directory / "run/model")));
  CHECK(fs::exists(directory / "elsewhere/model.safetensors"));
}

TEST_CASE("outputs that cannot be") {
  test::TemporaryDirectory directory;
  write_file(directory / "file", "x");
  CHECK(code_of(directory / "file", OutputMode::create) == int(ExitCode::model));
  CHECK(code_of(directory / "file" / "run", OutputMode::overwrite) == int(ExitCode::model));
  CHECK(read_text_file(directory / "file") == "x");
  CHECK_THROWS_AS(RunDirectory("/proc/self/run", OutputMode::create), Error);
}

TEST_CASE("one process at a time") {
  test::TemporaryDirectory directory;
  {
    RunDirectory run(directory / "run", OutputMode::create);
    CHECK_THROWS_WITH_AS(RunDirectory(directory / "run", OutputMode::resume),
                         doctest::Contains("another process"), Error);
  }
  RunDirectory again(directory / "run", OutputMode::resume);
}

TEST_CASE("--overwrite never removes what the run reads") {
  test::TemporaryDirectory directory;
  check_inputs_survive(directory / "a", {directory / "ab/train.csv", directory / "model", "x.csv"});
  for (const char* name : {"a/model", "a/../a/model/model.safetensors", "a"}) {
    CAPTURE(name);
    CHECK_THROWS_WITH_AS(check_inputs_survive(directory / "a", {"x.csv", directory / name}),
                         doctest::Contains("which this run reads"), Error);
  }
}

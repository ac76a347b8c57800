// Which runs a directory contains, and which are damaged.
#include <doctest/doctest.h>

#include <filesystem>

#include "contains.h"
#include "core/error.h"
#include "core/files/files.h"
#include "error_line.h"
#include "experiments/compare/find_runs.h"
#include "experiments/compare/run_record.h"
#include "temporary_directory.h"

using namespace finetune;
using test::contains;

namespace {

fs::path make_run(const fs::path& directory) {
  fs::create_directories(directory / "model");
  write_file(directory / "config.toml",
             "# finetune 0.1.0: the options of this run\nlr = 1e-4\nseed = 1\noutput = \"x\"\n");
  write_file(directory / "run.json", "{\"weights_sha256\": \"ab\"}\n");
  write_file(directory / "metrics.json", "{\"train_loss\": 1}\n");
  write_file(directory / "metrics.jsonl", "{\"step\":1,\"loss\":1}\n");
  return directory;
}

}  // namespace

TEST_CASE("a directory stands for the runs in it at any depth") {
  test::TemporaryDirectory directory;
  const fs::path deep = make_run(directory / "runs/nightly/2026/a");
  const fs::path swept = make_run(directory / "runs/sweep/lr=1,seed=2");
  const fs::path single = make_run(directory / "runs/b"), other = make_run(directory / "runs/c");
  write_file(directory / "runs/sweep/sweep.json", "{}");
  make_run(single / "checkpoints/inner");  // runs are not searched inside a run
  fs::create_directory_symlink(single, directory / "runs/best");
  fs::create_directory_symlink("..", directory / "runs/nightly/up");
  CHECK(find_runs({(directory / "runs").string()}) ==
        std::vector<fs::path>{single, other, deep, swept});
  CHECK(find_runs({(directory / "runs/best").string()}).size() == 1);  // named, a link is followed
  const std::string twice = (directory / "runs").string();
  CHECK(contains(test::error_line(ExitCode::usage,
                                  [&] {
                                    find_runs({twice, deep.string()});
                                  }),
                 "given twice"));
}

TEST_CASE("runs are in the order of the numbers in their names") {
  test::TemporaryDirectory directory;
  std::vector<fs::path> expected;
  for (const char* name :
       {"a", "lr=1e-4,seed=2", "lr=1e-4,seed=10", "lr=1e-10", "run", "run2", "run10"}) {
    expected.push_back(directory / name);
  }
  for (size_t i : {3, 5, 0, 6, 2, 4, 1}) make_run(expected[i]);
  CHECK(find_runs({directory.path().string()}) == expected);
}

TEST_CASE("a damaged config.toml is an error that names the run") {
  for (const std::string& text : {std::string(), std::string("# fine"), std::string(3, '\0')}) {
    test::TemporaryDirectory directory;
    make_run(directory / "runs/a");
    const fs::path config = make_run(directory / "runs/b") / "config.toml";
    write_file(config, text);
    const auto find = [&] { find_runs({(directory / "runs").string()}); };
    CHECK(contains(test::error_line(ExitCode::model, find), config.string()));
    fs::remove(config);
    CHECK(contains(test::error_line(ExitCode::model, find), config.string()));
  }
  // One of these names alone may come from another program.
  test::TemporaryDirectory directory;
  make_run(directory / "runs/a");
  write_file(directory / "config.toml", "title = 1\n");
  write_file(directory / "runs/run.json", "{}");
  CHECK(find_runs({directory.path().string()}).size() == 1);
}

TEST_CASE("files of a run that are missing, cut, links or too large are errors") {
  const auto read_after = [](auto&& damage) {
    test::TemporaryDirectory directory;
    const fs::path run = make_run(directory / "a");
    damage(run);
    return test::error_line(ExitCode::model, [&] { read_runs({run}); });
  };
  CHECK(read_after([](const fs::path&) {}).empty());
  CHECK(contains(read_after([](const fs::path& run) {
                   write_file(run / "config.toml", "# finetune 0.1.0: the options\nlr = 1e-4\n");
                 }),
                 "its last lines are missing"));
  CHECK(contains(read_after([](const fs::path& run) { fs::remove(run / "run.json"); }),
                 "run.json: is missing"));
  CHECK(contains(read_after([](const fs::path& run) { write_file(run / "run.json", ""); }),
                 "run.json"));
  CHECK(contains(read_after([](const fs::path& run) {
                   write_file(run / "metrics.json", "{\"train_loss\": ");
                 }),
                 "metrics.json"));
  for (const char* name : {"config.toml", "run.json", "metrics.json", "metrics.jsonl"}) {
    const std::string linked = read_after([&](const fs::path& run) {
      fs::rename(run / name, run.parent_path() / "elsewhere");
      fs::create_symlink("../elsewhere", run / name);
    });
    CHECK(contains(linked, concat(name, ": is a symbolic link")));
  }
  for (const char* name : {"config.toml", "run.json", "metrics.json"}) {
    const std::string large =
        read_after([&](const fs::path& run) { fs::resize_file(run / name, uintmax_t{20} << 30); });
    CHECK(contains(large, "holds more than 64 MiB"));
  }
}

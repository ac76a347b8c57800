// metrics.json, run.json and metrics.jsonl, read and written again.
#include <algorithm>

#include "core/error.h"
#include "core/files/text_file.h"
#include "fuzz/target.h"
#include "train/run/metrics_files.h"

namespace finetune::fuzz {
namespace {

void check_metrics(const fs::path& path) {
  const auto metrics = read_metrics(path);
  const fs::path copy = scratch_directory() / "copy.json";
  write_metrics(copy, metrics);
  require(read_metrics(copy) == metrics, "metrics come back changed");
}

void check_facts(const fs::path& path) {
  const NamedFacts facts = read_facts(path);
  const fs::path copy = scratch_directory() / "copy.json";
  write_facts(copy, facts);
  require(read_facts(copy) == facts, "facts come back changed");
}

// A resumed run keeps only whole lines of the log.
void check_log(const fs::path& path) {
  read_metrics_log(path);
  { MetricsLog log(path, 1 << 20, 1 << 20); }
  const std::string kept = read_text_file(path);
  require(kept.empty() || kept.back() == '\n', "a line is cut");
  const auto lines = std::count(kept.begin(), kept.end(), '\n');
  require(int64_t(read_metrics_log(path).size()) == lines, "a line that was kept is not read");
}

void check_files(std::string_view input) {
  const fs::path path = scratch_file("metrics.json", input);
  using Check = void (*)(const fs::path&);
  for (const Check check : {Check(check_metrics), Check(check_facts), Check(check_log)}) {
    try {
      check(path);
    } catch (const Error& error) {
      require(error.code() == ExitCode::usage || error.code() == ExitCode::model, error.what());
    }
  }
}

const Registration kMetricsJsonTarget({.name = "metrics_json", .run = check_files});

}  // namespace
}  // namespace finetune::fuzz

// Advice for directories that hold runs or models: a sweep's best run from its sweep.json.
#include "weights/run_collections.h"

#include <simdjson.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "core/files/file_kind.h"
#include "core/files/files.h"
#include "core/files/text_file.h"
#include "core/text/counted.h"
#include "weights/model_directory.h"

namespace finetune {
namespace {

namespace fs = std::filesystem;
using simdjson::dom::element;

constexpr size_t kMostEntries = 10'000;
constexpr std::string_view kSweepFile = "sweep.json";

struct BestRun {
  std::string metric;
  fs::path run;
};

bool holds_model(const fs::path& directory) {
  return find_config(directory) || find_config(directory / "model");
}

// The sweep's best run. Nothing if the file is damaged, no run is best yet, or its model is gone. A
// run's name is its directory in the sweep, which may have been moved.
std::optional<BestRun> best_run(const fs::path& directory) {
  simdjson::dom::parser parser;
  element sweep;
  std::string_view run, metric;
  const std::string text = read_text_file(directory / kSweepFile, ExitCode::model);
  if (parser.parse(text).get(sweep) != simdjson::SUCCESS ||
      sweep["best"]["run"].get(run) != simdjson::SUCCESS ||
      sweep["best"]["metric"].get(metric) != simdjson::SUCCESS || !holds_model(directory / run)) {
    return std::nullopt;
  }
  return BestRun{std::string(metric), directory / run};
}

// The entries that are models, runs with a model, or sweeps; sorted.
std::vector<fs::path> models_in(const fs::path& directory) {
  std::vector<fs::path> found;
  std::error_code error;
  size_t seen = 0;
  for (fs::directory_iterator it(directory, error), end; !error && it != end && seen < kMostEntries;
       it.increment(error), ++seen) {
    const fs::path& path = it->path();
    if (!directory_exists(path, ExitCode::model)) continue;
    if (holds_model(path) || path_exists(path / kSweepFile, ExitCode::model)) found.push_back(path);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

std::string advice_on_collection(const fs::path& directory) {
  const bool is_sweep = path_exists(directory / kSweepFile, ExitCode::model);
  if (is_sweep) {
    if (const auto best = best_run(directory)) {
      return concat(printable_path(directory), ": is a sweep, not a model; its best run by ",
                    in_quotes(best->metric), " is ", printable_path(best->run));
    }
  }
  const std::vector<fs::path> models = models_in(directory);
  const std::string kind = is_sweep ? ": is a sweep, not a model" : ": is not a model";
  if (models.empty()) return is_sweep ? printable_path(directory) + kind : "";
  return concat(
      printable_path(directory), kind, "; it holds ",
      counted(models.size(), "directory of a model or run", "directories of models or runs"),
      ", name one of them: ", printable_path(models[0]), models.size() > 1 ? ", ..." : "");
}

}  // namespace finetune

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

// A run's value of a metric, or nothing if the run is unfinished.
std::optional<double> value_of(element run, std::string_view metric) {
  double value = 0;
  if (run["metrics"][metric].get(value) != simdjson::SUCCESS) return std::nullopt;
  return value;
}

bool holds_model(const fs::path& directory) {
  return find_config(directory) || find_config(directory / "model");
}

// The best run of the best settings according to the sweep's comparison. Run names are directory
// names inside the sweep, which may have been moved.
std::optional<BestRun> best_of(const fs::path& directory, element sweep) {
  std::string_view metric;
  bool larger = false;
  uint64_t best = 0;
  simdjson::dom::array groups, best_runs, runs;
  const auto comparison = sweep["comparison"];
  const bool has_all = comparison["metric"].get(metric) == simdjson::SUCCESS &&
                       comparison["larger_is_better"].get(larger) == simdjson::SUCCESS &&
                       comparison["best"].get(best) == simdjson::SUCCESS &&
                       comparison["groups"].get(groups) == simdjson::SUCCESS &&
                       groups.at(best)["runs"].get(best_runs) == simdjson::SUCCESS &&
                       sweep["runs"].get(runs) == simdjson::SUCCESS;
  if (!has_all) return std::nullopt;
  std::vector<std::string_view> outputs;
  for (element each : best_runs) {
    std::string_view output;
    if (each.get(output) == simdjson::SUCCESS) outputs.push_back(output);
  }
  std::optional<BestRun> found;
  double best_value = 0;
  for (element run : runs) {
    std::string_view name, output;
    const std::optional<double> value = value_of(run, metric);
    if (!value || run["name"].get(name) != simdjson::SUCCESS ||
        run["output"].get(output) != simdjson::SUCCESS ||
        std::find(outputs.begin(), outputs.end(), output) == outputs.end() ||
        !holds_model(directory / name)) {
      continue;
    }
    if (found && (larger ? *value <= best_value : *value >= best_value)) continue;
    best_value = *value;
    found = BestRun{std::string(metric), directory / name};
  }
  return found;
}

// Nothing if the file is damaged, or the sweep has no best run yet.
std::optional<BestRun> best_run(const fs::path& directory) {
  simdjson::dom::parser parser;
  element sweep;
  const std::string text = read_text_file(directory / kSweepFile, ExitCode::model);
  if (parser.parse(text).get(sweep) != simdjson::SUCCESS) return std::nullopt;
  return best_of(directory, sweep);
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

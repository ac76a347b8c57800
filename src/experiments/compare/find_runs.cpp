// Walks directories in search of runs. An unreadable directory is an error: no run may be missed.
#include "experiments/compare/find_runs.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <system_error>

#include "core/error.h"
#include "core/files/directory_replacement.h"
#include "core/files/file_kind.h"
#include "core/files/files.h"
#include "core/log.h"
#include "train/run/run_directory.h"

namespace finetune {
namespace {

constexpr int kMostLevels = 32;
constexpr size_t kMostDirectories = 100'000;

bool is_run(const fs::path& directory) {
  return is_config_of_run(read_beginning(directory / "config.toml", 64));
}

// Whether these files look like a run's. Without a config.toml, one matching name is not enough.
bool has_files_of_run(const std::vector<std::string>& names) {
  constexpr std::array<std::string_view, 4> signs{"run.json", "metrics.jsonl", "evaluations.csv",
                                                  "checkpoints"};
  const auto has = [&](std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const auto found = std::count_if(signs.begin(), signs.end(), has);
  return found >= (has("config.toml") ? 1 : 2);
}

fs::file_type type_of(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (status.type() == fs::file_type::none) {
    throw system_failure(path, error.value(), ExitCode::model);
  }
  return status.type();
}

// Compares numbers in names by value: seed=2 comes before seed=10.
bool comes_before(std::string_view a, std::string_view b) {
  const auto digits_at = [](std::string_view text, size_t at) {
    const size_t end = text.find_first_not_of("0123456789", at);
    return std::min(end, text.size()) - at;
  };
  size_t i = 0, k = 0;
  while (i < a.size() && k < b.size()) {
    const size_t x = digits_at(a, i), y = digits_at(b, k);
    if (x > 0 && y > 0 && x != y) return x < y;  // sweeps write no leading zeros
    const int order =
        a.substr(i, std::max<size_t>(x, 1)).compare(b.substr(k, std::max<size_t>(y, 1)));
    if (order != 0) return order < 0;
    i += std::max<size_t>(x, 1);
    k += std::max<size_t>(y, 1);
  }
  return a.size() - i < b.size() - k;
}

class Search {
 public:
  std::vector<fs::path> runs_in(const fs::path& directory) {
    found_.clear();
    visit(directory, 0);
    return std::move(found_);
  }

 private:
  void visit(const fs::path& directory, int level) {
    if (++visited_ > kMostDirectories) {
      throw model_error(printable_path(directory), ": ", kMostDirectories,
                        " directories have been searched for runs; name directories with fewer");
    }
    if (is_run(directory)) return found_.push_back(directory);
    std::vector<std::string> names = entry_names(directory);
    if (has_files_of_run(names)) {
      throw model_error(printable_path(directory / "config.toml"),
                        ": is missing or damaged, and the files beside it are a run's; restore it, "
                        "or move the run elsewhere");
    }
    if (level == kMostLevels) {
      return warn(printable_path(directory), ": lies ", kMostLevels,
                  " levels deep and is not searched for runs; name it");
    }
    std::sort(names.begin(), names.end(), comes_before);
    for (const std::string& name : names) {
      const fs::path path = directory / name;
      const fs::file_type type = type_of(path);
      if (type == fs::file_type::directory) visit(path, level + 1);
      if (type == fs::file_type::symlink) name_link(path);
    }
  }

  // Warns if the link leads to a run. Ignores broken and unreadable links.
  static void name_link(const fs::path& link) try {
    if (!is_run(link)) return;
    warn(printable_path(link), ": is a link to a run and is left out; name the run");
  } catch (const Error&) {
  }

  std::vector<fs::path> found_;
  size_t visited_ = 0;
};

}  // namespace

std::vector<fs::path> find_runs(const std::vector<std::string>& directories) {
  std::vector<fs::path> runs;
  std::set<fs::path> seen;
  Search search;
  for (const std::string& given : directories) {
    const bool absent = !path_exists(given, ExitCode::model);
    const std::vector<fs::path> found = absent ? std::vector<fs::path>() : search.runs_in(given);
    if (found.empty()) {
      throw model_error(
          printable_path(given),
          absent ? ": no such directory" : ": is not a run of finetune train and holds none",
          "; give the --output of runs");
    }
    for (const fs::path& directory : found) {
      if (!seen.insert(fs::absolute(directory / "").lexically_normal()).second) {
        throw usage_error(printable_path(directory), ": is given twice");
      }
      if (has_ended(directory))
        runs.push_back(directory);
      else
        warn(printable_path(directory), ": has not ended and is left out");
    }
  }
  if (runs.empty()) {
    throw model_error(directories.at(0), ": no finished run; finetune train --resume goes on");
  }
  return runs;
}

}  // namespace finetune

// Finds the finished runs in directories, at any depth.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace finetune {

// Returns the finished runs in these directories, sorted by path within each directory. A
// directory that is a run stands for itself, any other for all runs in it, at any depth. Links are
// not followed, and the folders of a run are not searched. A run that has not ended is left out,
// and so is a link to a run; both are named in the log.
// Error(model): a directory cannot be read; a run's config.toml is damaged; one of the directories
// holds no run, or none of them holds a finished run. Error(usage): a run is given twice.
std::vector<std::filesystem::path> find_runs(const std::vector<std::string>& directories);

}  // namespace finetune

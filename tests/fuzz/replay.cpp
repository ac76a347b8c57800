// Gives inputs from files to the targets, with the ordinary compiler and no fuzzing engine.
//   fuzz_replay FOLDER...             each folder of FOLDER that is named after a target: its files
//   fuzz_replay TARGET FILE...        these files
//   fuzz_replay                       lists the targets
// A line for each finding and each target; exit status 1 if there was a finding.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <map>

#include "fuzz/target.h"

namespace {

using namespace finetune::fuzz;

struct Counts {
  size_t inputs = 0, findings = 0;
};

std::string content_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void replay(const Target& target, const fs::path& file, Counts& counts) {
  ++counts.inputs;
  // If an input crashes the program, this is the last line of output.
  std::fprintf(stderr, "%s\r", file.c_str());
  try {
    run_target(target, content_of(file));
  } catch (const Finding& finding) {
    ++counts.findings;
    std::printf("FAILED %s: %s: %s\n", target.name, file.c_str(), finding.what.c_str());
  }
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

const Target* target_named(const std::string& name) {
  const auto found = std::find_if(targets().begin(), targets().end(),
                                  [&](const Target& target) { return name == target.name; });
  return found == targets().end() ? nullptr : &*found;
}

int replay_all(const std::vector<std::string>& arguments) {
  std::map<std::string, Counts> counts;
  if (const Target* target = target_named(arguments[0])) {
    for (size_t i = 1; i < arguments.size(); ++i) {
      replay(*target, arguments[i], counts[target->name]);
    }
  } else {
    for (const Target& each : targets()) {
      for (const std::string& folder : arguments) {
        const fs::path inputs = fs::path(folder) / each.name;
        if (!fs::is_directory(inputs)) continue;
        for (const fs::path& file : files_in(inputs)) replay(each, file, counts[each.name]);
      }
    }
  }
  size_t findings = 0;
  for (const auto& [name, count] : counts) {
    std::printf("%s %zu inputs, %zu findings\n", name.c_str(), count.inputs, count.findings);
    findings += count.findings;
  }
  return counts.empty() || findings > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc > 1) return replay_all({argv + 1, argv + argc});
    for (const Target& target : targets()) std::printf("%s\n", target.name);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fuzz_replay: error: %s\n", error.what());
    return 2;
  }
}

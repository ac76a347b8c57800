// Where the test data lies: the folder `shared` beside the project, or $FINETUNE_SHARED.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace finetune::test {

inline std::filesystem::path shared_path(const std::string& name) {
  const char* root = std::getenv("FINETUNE_SHARED");
  return std::filesystem::path(root ? root : "../shared") / name;
}

// True if `name` is there; else prints the line that scripts/test.sh counts as a skip.
inline bool have_shared(const std::string& name) {
  if (std::filesystem::exists(shared_path(name))) return true;
  std::printf("SKIPPED: %s is absent\n", shared_path(name).c_str());
  return false;
}

}  // namespace finetune::test

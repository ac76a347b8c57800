// Where the test data lies: $FINETUNE_SHARED, else the folder `shared` beside the project.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace finetune::test {

inline std::filesystem::path shared_path(const std::string& name) {
  const char* root = std::getenv("FINETUNE_SHARED");
  if (!root) root = std::getenv("FINETUNE_SHARED_DEFAULT");  // tests/meson.build
  return std::filesystem::path(root ? root : "../shared") / name;
}

// Whether the test case that runs has said so already; main.cpp resets it at each one's start.
inline bool skip_is_printed = false;

// Prints the line that scripts/count_tests.py counts as a skip, once for a test case.
inline void skip(const std::string& reason) {
  if (!skip_is_printed) std::printf("SKIPPED: %s\n", reason.c_str());
  skip_is_printed = true;
}

// True if `name` is there; else the test case counts as skipped.
inline bool have_shared(const std::string& name) {
  if (std::filesystem::exists(shared_path(name))) return true;
  skip(shared_path(name).string() + " is absent");
  return false;
}

}  // namespace finetune::test

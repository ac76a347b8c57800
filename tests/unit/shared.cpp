// The look-up of test data, and the lines that tests/count_tests.py counts as skips.
#include "shared.h"

#include <cstdio>
#include <cstdlib>

namespace finetune::test {

namespace {

std::string case_name;
bool is_skipped = false;

}  // namespace

std::filesystem::path shared_path(const std::string& name) {
  const std::filesystem::path source = FINETUNE_SOURCE_ROOT, build = FINETUNE_BUILD_ROOT;
  for (const auto& folder : {source / "tests", source / "tests/golden", build / "tests"}) {
    if (std::filesystem::exists(folder / name)) return folder / name;
  }
  const char* shared = std::getenv("FINETUNE_SHARED");
  return (shared ? std::filesystem::path(shared) : source.parent_path() / "shared") / name;
}

std::filesystem::path source_path(const std::string& name) {
  return std::filesystem::path(FINETUNE_SOURCE_ROOT) / name;
}

void skip(const std::string& reason) {
  if (!is_skipped) std::printf("SKIPPED: %s: %s\n", case_name.c_str(), reason.c_str());
  is_skipped = true;
}

bool have_shared(const std::string& name) {
  const std::filesystem::path path = shared_path(name);
  if (std::filesystem::exists(path)) return true;
  skip(path.string() + " is absent");
  return false;
}

void begin_test_case(const char* name) {
  case_name = name;
  is_skipped = false;
}

}  // namespace finetune::test

// The places of test data: small files in tests/golden, large ones in a folder `shared`.
#pragma once

#include <filesystem>
#include <string>

namespace finetune::test {

// Returns the first of these that exists, or else the last:
//   tests/NAME and tests/golden/NAME in the source tree, tests/NAME in the build folder (formats
//   and broken models), $FINETUNE_SHARED/NAME, which is ../shared/NAME beside the source tree if
//   the variable is not set.
// `name` is a path such as "golden/forward-qa.safetensors" or "tokenizers/bert-base-cased".
std::filesystem::path shared_path(const std::string& name);

// The path of a file of the source tree, such as "data/samples/squad-dev.json".
std::filesystem::path source_path(const std::string& name);

// Counts the running test case as skipped, once, and prints the reason.
void skip(const std::string& reason);

// Returns true if `name` exists; else the test case counts as skipped.
bool have_shared(const std::string& name);

// main.cpp calls this when a test case starts.
void begin_test_case(const char* name);

}  // namespace finetune::test

// Gates as a JUnit file, which CI systems show as tests.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "train/run/gates.h"

namespace finetune {

// Call this before anything slow. Error(usage): `path` exists and is not a JUnit file of finetune
// (only those are replaced), or it is a name in `output` for which is_own() is true. `output` may
// be empty. Error(model): the file cannot be written.
void check_junit_output(const std::filesystem::path& path, const std::filesystem::path& output,
                        bool (*is_own)(std::string_view name));

// A test suite with one test per gate, and the metrics as properties. `command`: its name, such as
// "train". `about`: what the command worked on.
std::string junit_xml(const std::string& command, const std::string& about,
                      const AssertionReport& report, const std::map<std::string, double>& metrics);

// Writes the whole file or nothing; makes its folder if needed. Error(model).
void write_junit(const std::filesystem::path& path, const std::string& xml);

}  // namespace finetune

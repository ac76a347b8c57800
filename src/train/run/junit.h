// Gates as a JUnit file, which CI systems show as tests.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "train/run/gates.h"

namespace finetune {

// To be called before anything slow. Error(usage): `path` exists and is no such file of ours, which
// alone is replaced, or a name in `output` (empty: there is none) of which is_own. Error(model):
// nothing can be written there.
void check_junit_output(const std::filesystem::path& path, const std::filesystem::path& output,
                        bool (*is_own)(std::string_view name));

// A suite with a test for each gate, and the metrics as its properties. Names: of the command,
// "train", and what it was about.
std::string junit_xml(const std::string& command, const std::string& about,
                      const AssertionReport& report, const std::map<std::string, double>& metrics);

// Whole or not at all; its folder is made if need be. Error(model).
void write_junit(const std::filesystem::path& path, const std::string& xml);

}  // namespace finetune

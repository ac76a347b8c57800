// Writes JUnit's testsuites, testsuite, testcase and failure.
#include "train/run/junit.h"

#include <algorithm>

#include "core/error.h"
#include "core/files/directory_replacement.h"
#include "core/files/files.h"
#include "core/files/output_directory.h"
#include "core/files/path_advice.h"
#include "core/text/printable.h"
#include "train/run/metrics_files.h"

namespace finetune {
namespace {

constexpr std::string_view kJunitBegin =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"finetune\"";

fs::path folder_of(const fs::path& path) {
  return fs::absolute(path).lexically_normal().parent_path();
}

// The first part of `path` relative to `directory`; ".." if it is outside.
std::string name_inside(const fs::path& path, const fs::path& directory) {
  const fs::path from = without_trailing_separator(fs::absolute(directory).lexically_normal());
  return fs::absolute(path).lexically_normal().lexically_relative(from).begin()->string();
}

}  // namespace

void check_junit_output(const fs::path& path, const fs::path& output,
                        bool (*is_own)(std::string_view name)) {
  std::error_code error;
  if (!output.empty() && is_own(name_inside(path, output))) {
    throw usage_error("--junit ", path.string(), ": is a name of --output's own; choose another");
  }
  require_output_suffix("--junit", path.string(), {".xml"}, "XML is written; name it .xml");
  if (fs::is_symlink(fs::symlink_status(path, error))) {
    throw usage_error("--junit ", path.string(), ": is a symbolic link; name a file");
  }
  const FileKind kind = kind_of(path, ExitCode::model);
  if (kind == FileKind::absent) return check_writable(folder_of(path));
  if (kind == FileKind::directory) {
    throw usage_error("--junit ", path.string(), ": is a directory, a file is needed");
  }
  if (read_beginning(path, kJunitBegin.size()) != kJunitBegin) {
    throw usage_error("--junit ", path.string(),
                      ": exists and is not a JUnit file of finetune; choose another file");
  }
}

std::string junit_xml(const std::string& command, const std::string& about,
                      const AssertionReport& report, const std::map<std::string, double>& metrics) {
  const auto failures = std::count_if(report.checks.begin(), report.checks.end(),
                                      [](const GateCheck& check) { return !check.passed; });
  const std::string counts =
      concat(" tests=\"", report.checks.size(), "\" failures=\"", failures, "\" errors=\"0\"");
  // JUnit schemas allow `skipped` only for a testsuite.
  std::string out = concat(kJunitBegin, counts, ">\n  <testsuite name=\"", markup_escaped(about),
                           "\"", counts, " skipped=\"0\">\n    <properties>\n");
  for (const auto& [name, value] : metrics) {
    out += concat("      <property name=\"", markup_escaped(name, 200), "\" value=\"",
                  number_text(value), "\"/>\n");
  }
  out += "    </properties>\n";
  for (const GateCheck& check : report.checks) {
    out += concat("    <testcase classname=\"finetune.", command, "\" name=\"",
                  markup_escaped(concat(check.metric, " ", check.bound)), "\"");
    if (check.passed) {
      out += "/>\n";
      continue;
    }
    const std::string message =
        markup_escaped(concat(check.metric, " is ", check.value, ", not ", check.bound));
    out += concat(">\n      <failure type=\"gate\" message=\"", message, "\">", message,
                  "</failure>\n    </testcase>\n");
  }
  return out + "  </testsuite>\n</testsuites>\n";
}

void write_junit(const fs::path& path, const std::string& xml) {
  finetune::create_directories(folder_of(path));
  remove_abandoned_files(path);
  write_file(path, xml);
}

}  // namespace finetune

// The machine-readable results of a run: metrics.jsonl, metrics.json and run.json. Numbers read
// back to the same value. JSON has no NaN: a number that is not finite is left out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"

namespace finetune {

using NamedNumbers = std::vector<std::pair<std::string, double>>;

// {"step":1,"loss":0.5}; names in the order given, whole numbers without a point.
std::string json_line(const NamedNumbers& numbers);

// As JSON and CSV have it: whole numbers without a point, all others so that they read back.
std::string number_text(double value);

// Flat, numbers only, one per line, through a temporary file.
void write_metrics(const std::filesystem::path& path, const std::map<std::string, double>& metrics);
// Error(code) naming the file if it is not such a file (numbers in nested objects are passed
// over).
std::map<std::string, double> read_metrics(const std::filesystem::path& path,
                                           ExitCode code = ExitCode::usage);
// The same of the file's text.
std::map<std::string, double> parse_metrics(const std::string& text,
                                            const std::filesystem::path& path, ExitCode code);

// run.json: facts as strings, in the order given. A list of strings is read as one, joined by "; ".
using NamedFacts = std::vector<std::pair<std::string, std::string>>;
std::string facts_json(const NamedFacts& facts);
void write_facts(const std::filesystem::path& path, const NamedFacts& facts);
// The value of a fact, or nothing.
std::string fact_named(const NamedFacts& facts, std::string_view name);
// Error(model) naming the file if it is not such a file.
NamedFacts read_facts(const std::filesystem::path& path);

// The lines of a metrics.jsonl that hold numbers, and the number of other lines that are not empty.
// Both are empty if there is no such file. Error(model): it cannot be read, or is larger than any
// run's.
struct MetricsLines {
  std::vector<NamedNumbers> lines;
  int64_t damaged = 0;
};
MetricsLines read_metrics_lines(const std::filesystem::path& path);
std::vector<NamedNumbers> read_metrics_log(const std::filesystem::path& path);  // the lines alone

// metrics.jsonl. Each line is handed to the operating system at once, so that a killed process
// loses none. Errors are Error(model) naming the file.
class MetricsLog {
 public:
  // Starts a new file, or with `resume_step` >= 0 continues the one that is there: lines up to that
  // step are kept, evaluations (lines without a loss) up to `evaluated_step`, what comes after them
  // will be done again. A line cut by a kill is dropped.
  MetricsLog(std::filesystem::path path, int64_t resume_step, int64_t evaluated_step = -1);
  ~MetricsLog();
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;

  void append(const NamedNumbers& numbers);
  void sync();  // to the disk; before a checkpoint that refers to these steps

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace finetune

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

// Formats a number for JSON and CSV: whole numbers without a point, others so that they read back.
std::string number_text(double value);

// Writes a flat object of numbers, one per line, through a temporary file.
void write_metrics(const std::filesystem::path& path, const std::map<std::string, double>& metrics);
// Error(code) naming the file if it is not a metrics file. Numbers in nested objects are ignored.
std::map<std::string, double> read_metrics(const std::filesystem::path& path,
                                           ExitCode code = ExitCode::usage);
// The same for a text instead of a file.
std::map<std::string, double> parse_metrics(const std::string& text,
                                            const std::filesystem::path& path, ExitCode code);

// run.json: facts as strings, in the order given. A list of strings is read as one, joined by "; ".
using NamedFacts = std::vector<std::pair<std::string, std::string>>;
std::string facts_json(const NamedFacts& facts);
void write_facts(const std::filesystem::path& path, const NamedFacts& facts);
// The value of the fact, or "".
std::string fact_named(const NamedFacts& facts, std::string_view name);
// Error(model) naming the file if it is not a run's facts.
NamedFacts read_facts(const std::filesystem::path& path);

// The lines of a metrics.jsonl that hold numbers, and how many other lines are not empty. No lines
// and 0 if the file does not exist. Error(model): it cannot be read, or is larger than any run's.
struct MetricsLines {
  std::vector<NamedNumbers> lines;
  int64_t damaged = 0;
};
MetricsLines read_metrics_lines(const std::filesystem::path& path);
std::vector<NamedNumbers> read_metrics_log(const std::filesystem::path& path);  // only the lines

// Writes metrics.jsonl. Each line is handed to the operating system at once, so that a killed
// process loses none. Errors are Error(model) naming the file.
class MetricsLog {
 public:
  // Starts a new file, or with `resume_step` >= 0 continues the existing one. Keeps steps up to
  // `resume_step` and evaluations (lines without a loss) up to `evaluated_step`; the run repeats
  // the others. Drops a line that a kill cut off.
  MetricsLog(std::filesystem::path path, int64_t resume_step, int64_t evaluated_step = -1);
  ~MetricsLog();
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;

  void append(const NamedNumbers& numbers);
  void sync();  // to the disk; call before saving a checkpoint of these steps

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace finetune

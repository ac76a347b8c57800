// Writes and reads metrics.jsonl, metrics.json and run.json.
#include "train/run/metrics_files.h"

#include <simdjson.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/files.h"
#include "core/text/json_fault.h"

namespace finetune {
namespace {

constexpr size_t kMostMetrics = 10'000;  // no run has more metrics or facts

std::string too_many(const fs::path& path) {
  return concat(path.string(), ": has more than ", kMostMetrics, " entries");
}

std::string json_string(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// A line that is not whole is not kept.
bool is_kept(simdjson::dom::parser& parser, std::string_view line, int64_t step,
             int64_t evaluated) {
  simdjson::dom::element json, loss;
  int64_t own = 0;
  if (auto error = parser.parse(line.data(), line.size()).get(json)) {
    json_fault(error);  // throws where memory is short: that is no reason to lose a line
    return false;
  }
  if (json["step"].get(own)) return false;
  bool is_training = !json["loss"].get(loss);
  return own <= (is_training ? step : std::min(step, evaluated));
}

void keep_lines_up_to(const fs::path& path, int64_t step, int64_t evaluated) {
  ::close(open_for_appending(path, false));  // no link: before anything is read from it
  simdjson::dom::parser parser;
  std::string kept;
  const MappedFile file(path, ExitCode::model);  // of any size
  for (std::string_view rest = file.text(); !rest.empty();) {
    size_t end = rest.find('\n');
    if (end == std::string_view::npos) break;
    if (is_kept(parser, rest.substr(0, end), step, evaluated)) kept.append(rest.substr(0, end + 1));
    rest.remove_prefix(end + 1);
  }
  const bool changed = kept != file.text();
  file.check_intact();
  if (changed) write_file(path, kept);
}

}  // namespace

std::string number_text(double value) {
  if (value == std::floor(value) && std::abs(value) < 0x1p53) return concat(int64_t(value));
  return format_number(value);
}

std::string json_line(const NamedNumbers& numbers) {
  std::string line = "{";
  for (const auto& [name, value] : numbers) {
    if (!std::isfinite(value)) continue;
    if (line.size() > 1) line += ',';
    line += concat(json_string(name), ":", number_text(value));
  }
  return line + "}";
}

void write_metrics(const fs::path& path, const std::map<std::string, double>& metrics) {
  std::string text = "{";
  for (const auto& [name, value] : metrics) {
    if (!std::isfinite(value)) continue;
    text += concat(text.size() > 1 ? ",\n  " : "\n  ", json_string(name), ": ", number_text(value));
  }
  write_file(path, text + "\n}\n");
}

std::map<std::string, double> read_metrics(const fs::path& path, ExitCode code) {
  return parse_metrics(read_text_input(path, code), path, code);
}

std::map<std::string, double> parse_metrics(const std::string& text, const fs::path& path,
                                            ExitCode code) {
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  if (auto error = parser.parse(text).get(object)) {
    throw Error(code, concat(path.string(), ": is not a metrics file (a JSON object of numbers): ",
                             json_fault(error)));
  }
  std::map<std::string, double> metrics;
  for (auto field : object) {
    double value = 0;
    if (!field.value.get(value)) metrics[std::string(field.key)] = value;
    if (metrics.size() > kMostMetrics) throw Error(code, too_many(path));
  }
  if (metrics.empty()) throw Error(code, concat(path.string(), ": holds no metric"));
  return metrics;
}

void write_facts(const fs::path& path, const NamedFacts& facts) {
  std::string text = "{";
  for (const auto& [name, value] : facts) {
    text += concat(text.size() > 1 ? ",\n  " : "\n  ", json_string(name), ": ", json_string(value));
  }
  write_file(path, text + "\n}\n");
}

NamedFacts read_facts(const fs::path& path) {
  const std::string text = read_text_file(path, ExitCode::model);
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  if (auto error = parser.parse(text).get(object)) {
    throw model_error(path.string(),
                      ": is not a run's facts (a JSON object of strings): ", json_fault(error));
  }
  NamedFacts facts;
  for (auto field : object) {
    std::string_view value;
    if (!field.value.get(value)) facts.emplace_back(field.key, value);
    if (facts.size() > kMostMetrics) throw model_error(too_many(path));
  }
  return facts;
}

std::vector<NamedNumbers> read_metrics_log(const fs::path& path) {
  std::vector<NamedNumbers> lines;
  if (!path_exists(path, ExitCode::model)) return lines;
  const MappedFile file(path, ExitCode::model);
  file.read_intact([&] {
    simdjson::dom::parser parser;
    for (std::string_view line : split(file.text(), '\n')) {
      if (line.empty()) continue;  // of an empty file it is nowhere in memory
      simdjson::dom::object object;
      if (auto error = parser.parse(line.data(), line.size()).get(object)) {
        json_fault(error);  // throws where memory is short
        continue;
      }
      NamedNumbers numbers;
      for (auto field : object) {
        double value = 0;
        if (!field.value.get(value)) numbers.emplace_back(field.key, value);
      }
      if (!numbers.empty()) lines.push_back(std::move(numbers));
    }
  });
  return lines;
}

MetricsLog::MetricsLog(fs::path path, int64_t resume_step, int64_t evaluated_step)
    : path_(std::move(path)) {
  if (resume_step >= 0) keep_lines_up_to(path_, resume_step, evaluated_step);
  descriptor_ = open_for_appending(path_, resume_step < 0);
}

MetricsLog::~MetricsLog() {
  ::close(descriptor_);
}

void MetricsLog::append(const NamedNumbers& numbers) {
  const std::string line = json_line(numbers) + "\n";
  if (!write_all(descriptor_, line)) {
    throw model_error(path_.string(), ": cannot be written: ", std::strerror(errno));
  }
}

void MetricsLog::sync() {
  if (::fdatasync(descriptor_) != 0 && errno != EINVAL && errno != EROFS) {
    throw model_error(path_.string(), ": cannot be written: ", std::strerror(errno));
  }
}

}  // namespace finetune

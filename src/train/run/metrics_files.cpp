// Writes and reads metrics.jsonl, metrics.json and run.json.
#include "train/run/metrics_files.h"

#include <simdjson.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <optional>

#include "core/error.h"
#include "core/files/file_kind.h"
#include "core/files/files.h"
#include "core/text/json_text.h"
#include "core/text/json_value.h"

namespace finetune {
namespace {

constexpr size_t kMostMetrics = 10'000;  // more than any run has of metrics or facts

constexpr uint64_t kMostLogBytes = uint64_t{1} << 30;
constexpr size_t kLongestLine = 1 << 20;  // of metrics.jsonl

std::string too_many(const fs::path& path) {
  return concat(path.string(), ": has more than ", kMostMetrics, " entries");
}

// Returns a string, or the strings of a list in one text.
std::optional<std::string> fact_in(const simdjson::dom::element& json) {
  std::string_view text;
  if (!json.get(text)) return std::string(text);
  simdjson::dom::array list;
  if (json.get(list)) return std::nullopt;
  std::vector<std::string> texts;
  for (auto entry : list) {
    if (!entry.get(text)) texts.emplace_back(text);
  }
  return join(texts, "; ");
}

// Opens a metrics.jsonl. Refuses a file larger than any run's: reading it would take minutes.
MappedFile open_metrics_log(const fs::path& path) {
  if (file_bytes(path, ExitCode::model) > kMostLogBytes) {
    throw model_error(printable_path(path), ": holds more than ", kMostLogBytes >> 20,
                      " MiB, too much for a run's metrics; move it away");
  }
  return MappedFile(path, ExitCode::model);
}

// Calls visit(line, is_whole) for each line that is not empty, without its end. The last line of a
// file is whole if it has an end.
template <typename Visit>
void for_each_line(std::string_view text, Visit&& visit) {
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of('\n'), text.size()));
    if (text.empty()) return;
    const size_t end = text.find('\n');
    visit(text.substr(0, end), end != std::string_view::npos);
    text.remove_prefix(std::min(end, text.size()));
  }
}

// Whether a line stays in the file. An incomplete line does not.
bool is_kept(simdjson::dom::parser& parser, std::string_view line, int64_t step,
             int64_t evaluated) {
  if (line.size() > kLongestLine) return false;
  simdjson::dom::element json, loss;
  int64_t own = 0;
  if (auto error = parser.parse(line.data(), line.size()).get(json)) {
    json_fault(error);  // throws if memory is short: the line is not at fault
    return false;
  }
  if (json["step"].get(own)) return false;
  bool is_training = !json["loss"].get(loss);
  return own <= (is_training ? step : std::min(step, evaluated));
}

void keep_lines_up_to(const fs::path& path, int64_t step, int64_t evaluated) {
  ::close(open_for_appending(path, false));  // refuses a link before anything is read
  simdjson::dom::parser parser;
  std::string kept;
  const MappedFile file = open_metrics_log(path);
  for_each_line(file.text(), [&](std::string_view line, bool is_whole) {
    if (is_whole && is_kept(parser, line, step, evaluated)) kept.append(line).append("\n");
  });
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
    line += concat(JsonValue(name).text(), ":", number_text(value));
  }
  return line + "}";
}

void write_metrics(const fs::path& path, const std::map<std::string, double>& metrics) {
  std::string text = "{";
  for (const auto& [name, value] : metrics) {
    if (!std::isfinite(value)) continue;
    text += concat(text.size() > 1 ? ",\n  " : "\n  ", JsonValue(name).text(), ": ",
                   number_text(value));
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

std::string facts_json(const NamedFacts& facts) {
  std::string text = "{";
  for (const auto& [name, value] : facts) {
    text += concat(text.size() > 1 ? ",\n  " : "\n  ", JsonValue(name).text(), ": ",
                   JsonValue(value).text());
  }
  return text + "\n}\n";
}

void write_facts(const fs::path& path, const NamedFacts& facts) {
  write_file(path, facts_json(facts));
}

std::string fact_named(const NamedFacts& facts, std::string_view name) {
  const auto found = std::find_if(facts.begin(), facts.end(),
                                  [&](const auto& fact) { return fact.first == name; });
  return found == facts.end() ? "" : found->second;
}

NamedFacts read_facts(const fs::path& path) {
  const std::string text = read_text_input(path, ExitCode::model);
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  if (auto error = parser.parse(text).get(object)) {
    throw model_error(path.string(),
                      ": is not a run's facts (a JSON object of strings): ", json_fault(error));
  }
  NamedFacts facts;
  for (auto field : object) {
    if (const auto value = fact_in(field.value)) facts.emplace_back(field.key, *value);
    if (facts.size() > kMostMetrics) throw model_error(too_many(path));
  }
  return facts;
}

MetricsLines read_metrics_lines(const fs::path& path) {
  MetricsLines out;
  if (!path_exists(path, ExitCode::model)) return out;
  const MappedFile file = open_metrics_log(path);
  simdjson::dom::parser parser;
  const auto numbers_of = [&](std::string_view line) {
    NamedNumbers numbers;
    if (line.size() > kLongestLine) return numbers;
    simdjson::dom::object object;
    if (auto error = parser.parse(line.data(), line.size()).get(object)) {
      json_fault(error);  // throws if memory is short
      return numbers;
    }
    for (auto field : object) {
      double value = 0;
      if (!field.value.get(value)) numbers.emplace_back(field.key, value);
    }
    return numbers;
  };
  file.read_intact([&] {
    for_each_line(file.text(), [&](std::string_view line, bool) {
      NamedNumbers numbers = numbers_of(line);
      if (numbers.empty())
        ++out.damaged;
      else
        out.lines.push_back(std::move(numbers));
    });
  });
  return out;
}

std::vector<NamedNumbers> read_metrics_log(const fs::path& path) {
  return read_metrics_lines(path).lines;
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
    throw write_failure(path_, errno);
  }
}

void MetricsLog::sync() {
  if (::fdatasync(descriptor_) != 0 && errno != EINVAL && errno != EROFS) {
    throw write_failure(path_, errno);
  }
}

}  // namespace finetune

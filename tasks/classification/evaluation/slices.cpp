// Counts rows by column values, and prints and writes the counts.
#include "tasks/classification/evaluation/slices.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/files/files.h"
#include "core/text/json_value.h"
#include "core/text/printable.h"
#include "core/text/text.h"
#include "data/rows/row_files.h"
#include "tasks/classification/predictions/prediction_format.h"
#include "tasks/texts/encoded_rows.h"

namespace finetune {
namespace {

constexpr size_t kMostValues = 100'000;               // per slice
constexpr size_t kMostValueBytes = size_t{64} << 20;  // of all slices together
constexpr size_t kShownValues = 20, kShownBytes = 40;
constexpr std::string_view kSeenName = "seen", kUnseenName = "unseen";

double f1_macro(const std::map<int32_t, ClassScores>& classes) {
  double sum = 0;
  for (const auto& [id, c] : classes)
    sum += 2.0 * double(c.correct) / double(c.support + c.predicted);
  return classes.empty() ? 0 : sum / double(classes.size());
}

}  // namespace

Slices::Slices(const TaskOptions& options, ProblemType problem,
               const std::vector<std::string>& columns, const std::filesystem::path& file)
    : problem_(problem) {
  for (const std::string& name : options.slices) {
    Slice slice;
    slice.name = name;
    slice.by_seen = name.starts_with(kSeenPrefix);
    const std::string column = slice.by_seen ? name.substr(kSeenPrefix.size()) : name;
    slice.column = find_column(columns, column, file, "--slice");
    slices_.push_back(std::move(slice));
  }
  const bool any_seen =
      std::any_of(slices_.begin(), slices_.end(), [](const Slice& slice) { return slice.by_seen; });
  if (any_seen && options.seen_files.empty()) {
    throw usage_error("--slice seen:COLUMN needs --seen-in, the files that training has seen");
  }
  if (!any_seen && !options.seen_files.empty()) {
    throw usage_error("--seen-in needs --slice seen:COLUMN, the column whose values it is about");
  }
  if (any_seen) read_seen(options);
}

void Slices::read_seen(const TaskOptions& options) {
  RowOptions reading = options.rows;
  reading.columns.emplace();
  for (const Slice& slice : slices_) {
    if (slice.by_seen) reading.columns->push_back(slice.name.substr(kSeenPrefix.size()));
  }
  RowFiles files(options.seen_files, reading);
  std::vector<std::pair<Slice*, size_t>> wanted;
  for (Slice& slice : slices_) {
    if (!slice.by_seen) continue;
    wanted.emplace_back(&slice, find_column(files.columns(), slice.name.substr(kSeenPrefix.size()),
                                            files.first_file(), "--slice"));
  }
  Row row;
  while (files.next(row)) {
    for (auto& [slice, column] : wanted) slice->seen.emplace(row.values[column]);
  }
}

std::string_view Slices::value_of(const Slice& slice, RowValues row) const {
  const std::string_view value = row[slice.column];
  if (!slice.by_seen) return value;
  return slice.seen.contains(std::string(value)) ? kSeenName : kUnseenName;
}

int32_t Slices::add_place(Slice& slice, std::string_view value) {
  const auto [found, is_new] = slice.places.emplace(value, int32_t(slice.values.size()));
  if (!is_new) return found->second;
  value_bytes_ += value.size();
  if (slice.values.size() == kMostValues || value_bytes_ > kMostValueBytes) {
    throw data_error("--slice ", slice.name, ": the column has more than ",
                     slice.values.size() == kMostValues
                         ? concat(kMostValues, " values")
                         : concat(kMostValueBytes >> 20, " MiB of different values"),
                     "; choose one with fewer, or seen:", slice.name);
  }
  slice.values.emplace_back();
  slice.values.back().name = value;
  return found->second;
}

void Slices::note(RowValues row) {
  for (Slice& slice : slices_) add_place(slice, value_of(slice, row));
}

std::vector<int32_t> Slices::places_of(RowValues row) const {
  std::vector<int32_t> places;
  for (const Slice& slice : slices_) {
    const auto found = slice.places.find(std::string(value_of(slice, row)));
    if (found == slice.places.end()) {
      throw data_error("--slice ", slice.name, ": a value is new; the file has changed while it ",
                       "was evaluated");
    }
    places.push_back(found->second);
  }
  return places;
}

void Slices::add_label(std::span<const int32_t> places, int32_t truth, int32_t predicted) {
  add_set(places, {&truth, 1}, {&predicted, 1});
}

void Slices::add_set(std::span<const int32_t> places, std::span<const int32_t> truth,
                     std::span<const int32_t> predicted) {
  const bool right = std::equal(truth.begin(), truth.end(), predicted.begin(), predicted.end());
  for (size_t s = 0; s < places.size(); ++s) {
    Value& value = slices_[s].values[size_t(places[s])];
    ++value.rows;
    value.right += right;
    for (int32_t id : truth) ++value.classes[id].support;
    for (int32_t id : predicted) {
      ClassScores& scores = value.classes[id];
      ++scores.predicted;
      scores.correct += std::binary_search(truth.begin(), truth.end(), id);
    }
  }
}

void Slices::add_value(std::span<const int32_t> places, double truth, double predicted) {
  const double error = predicted - truth;
  for (size_t s = 0; s < places.size(); ++s) {
    Value& value = slices_[s].values[size_t(places[s])];
    ++value.rows;
    value.squares += error * error;
    value.distances += std::abs(error);
  }
}

double Slices::Value::score(bool second, bool of_numbers) const {
  if (rows == 0) return 0;
  if (of_numbers) return (second ? distances : squares) / double(rows);
  return second ? f1_macro(classes) : double(right) / double(rows);
}

std::vector<const Slices::Value*> Slices::by_frequency(const Slice& slice) {
  std::vector<const Value*> sorted;
  for (const Value& value : slice.values) {
    if (value.rows > 0) sorted.push_back(&value);
  }
  std::sort(sorted.begin(), sorted.end(), [](const Value* a, const Value* b) {
    return a->rows != b->rows ? a->rows > b->rows : a->name < b->name;
  });
  return sorted;
}

std::vector<std::string> Slices::headings() const {
  if (problem_ == ProblemType::regression) return {"rows", "mse", "mae"};
  return {"rows", "accuracy", "f1_macro"};
}

std::string Slices::table() const {
  const bool of_numbers = problem_ == ProblemType::regression;
  std::string out;
  for (const Slice& slice : slices_) {
    const std::vector<const Value*> values = by_frequency(slice);
    const size_t shown = std::min(values.size(), kShownValues);
    std::vector<std::vector<std::string>> lines = {headings()};
    lines[0].insert(lines[0].begin(), printable(slice.name, kShownBytes));
    for (size_t i = 0; i < shown; ++i) {
      const Value& value = *values[i];
      lines.push_back({value.name.empty() ? "(empty)" : printable(value.name, kShownBytes),
                       concat(value.rows), format_fixed(value.score(false, of_numbers), 4),
                       format_fixed(value.score(true, of_numbers), 4)});
    }
    std::vector<size_t> widths(4);
    for (const auto& line : lines) {
      for (size_t i = 0; i < 4; ++i) widths[i] = std::max(widths[i], count_code_points(line[i]));
    }
    out += '\n';
    for (const auto& line : lines) {
      out += padded(line[0], widths[0], false);
      for (size_t i = 1; i < 4; ++i) out += "  " + padded(line[i], widths[i], true);
      out += '\n';
    }
    if (shown < values.size()) {
      out += concat("and ", values.size() - shown,
                    " values with fewer rows (all are in slices.csv of --output)\n");
    }
  }
  return out;
}

std::string Slices::json() const {
  const bool of_numbers = problem_ == ProblemType::regression;
  const std::vector<std::string> names = headings();
  JsonArray all;
  for (const Slice& slice : slices_) {
    for (const Value* value : by_frequency(slice)) {
      all.add(JsonObject{{"slice", slice.name},
                         {"value", value->name},
                         {names[0], value->rows},
                         {names[1], value->score(false, of_numbers)},
                         {names[2], value->score(true, of_numbers)}});
    }
  }
  return all.text();
}

void Slices::write(const std::filesystem::path& path) const {
  const bool of_numbers = problem_ == ProblemType::regression;
  AtomicFile file(path);
  std::vector<std::string> columns = headings();
  columns.insert(columns.begin(), {"slice", "value"});
  std::string line;
  append_csv_row(columns, line);
  for (const Slice& slice : slices_) {
    for (const Value* value : by_frequency(slice)) {
      append_csv_row(std::vector<std::string>{slice.name, value->name, concat(value->rows),
                                              format_number(value->score(false, of_numbers)),
                                              format_number(value->score(true, of_numbers))},
                     line);
      file.write(line);
      line.clear();
    }
  }
  file.write(line);
  file.commit();
}

}  // namespace finetune

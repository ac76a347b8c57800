// Metrics of rows by the values of a column, for example divisions or currencies. Also by whether
// training has seen the value.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "data/columns/text_columns.h"
#include "tasks/classification/rows/dataset.h"
#include "tasks/scores/label_scores.h"
#include "tasks/task.h"

namespace finetune {

// The memory grows with the values of the columns and their labels, not with the rows. There is a
// limit on the values (Error(data)).
class Slices {
 public:
  // Uses options.slices and seen_files. Error(usage): "seen:COLUMN" without seen_files, or
  // seen_files without it. Error(data): the evaluated files or seen_files lack a column.
  Slices(const TaskOptions& options, ProblemType problem, const std::vector<std::string>& columns,
         const std::filesystem::path& file);

  bool empty() const { return slices_.empty(); }
  // Registers the row's values. Call it for all rows before scoring the first.
  void note(RowValues row);
  // The index of the row's value in each slice.
  std::vector<int32_t> places_of(RowValues row) const;

  // Adds a row's truth and prediction. Call in the order of the rows.
  void add_label(std::span<const int32_t> places, int32_t truth, int32_t predicted);
  void add_set(std::span<const int32_t> places, std::span<const int32_t> truth,
               std::span<const int32_t> predicted);
  void add_value(std::span<const int32_t> places, double truth, double predicted);

  // For people: the most frequent values of each slice.
  std::string table() const;
  // For programs, all values: [{"slice":"currency","value":"CAD","rows":12,"accuracy":0.75,...},
  // ...].
  std::string json() const;
  // slice,value,rows and accuracy,f1_macro (over the labels that occur with the value) or mse,mae:
  // all values, the most frequent first.
  void write(const std::filesystem::path& path) const;

 private:
  struct Value {
    std::string name;
    int64_t rows = 0, right = 0;
    std::map<int32_t, ClassScores> classes;
    double squares = 0, distances = 0;  // sums of squared and absolute errors

    double score(bool second, bool of_numbers) const;
  };
  struct Slice {
    std::string name;
    size_t column = 0;
    bool by_seen = false;
    std::unordered_set<std::string> seen;
    std::unordered_map<std::string, int32_t> places;
    std::vector<Value> values;
  };
  void read_seen(const TaskOptions& options);
  int32_t add_place(Slice& slice, std::string_view value);
  std::string_view value_of(const Slice& slice, RowValues row) const;
  static std::vector<const Value*> by_frequency(const Slice& slice);
  std::vector<std::string> headings() const;

  ProblemType problem_;
  std::vector<Slice> slices_;
  size_t value_bytes_ = 0;
};

}  // namespace finetune

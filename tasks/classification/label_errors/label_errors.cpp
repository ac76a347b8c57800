// Writes suspect rows with reasons, and the probabilities of all rows, as CSV.
#include "tasks/classification/label_errors/label_errors.h"

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/text/counted.h"
#include "core/text/shown_numbers.h"
#include "core/text/text.h"
#include "data/rows/csv_line.h"
#include "tasks/classification/check/findings.h"
#include "tasks/classification/label_errors/out_of_fold.h"
#include "tasks/classification/label_errors/suspect_labels.h"

namespace finetune {
namespace {

std::string in_percent(double probability) {
  return format_fixed(100 * probability, 1);
}

const Table::Row& table_row(const CheckedSide& side, int64_t i) {
  return side.table->rows()[side.rows[size_t(i)]];
}

// File and line of a row: "train.csv,118".
std::string place_of(const CheckedSide& side, int64_t i) {
  const Table::Row& row = table_row(side, i);
  std::string out;
  append_csv_value(side.table->files()[row.file].string(), out);
  return concat(out, ",", row.line);
}

// Finds rows with equal texts.
class EqualTexts {
 public:
  explicit EqualTexts(const CheckedSide& side) : side_(side) {
    for (size_t i = 0; i < side.size(); ++i) rows_[side.text_sums[i]].push_back(i);
  }

  // "; 2 rows with the same text have the label 'Food'", for the commonest other label, or "".
  std::string contradiction(int64_t row) const {
    std::map<std::string_view, int64_t> counts;
    for (const size_t other : rows_.at(side_.text_sums[size_t(row)])) {
      if (side_.labels[other] != side_.labels[size_t(row)]) ++counts[side_.labels[other]];
    }
    const std::pair<const std::string_view, int64_t>* most = nullptr;
    for (const auto& count : counts) {
      if (!most || count.second > most->second) most = &count;
    }
    if (!most) return "";
    return concat(
        "; ", counted(most->second, "row with the same text has", "rows with the same text have"),
        " the label '", most->first, "'");
  }

 private:
  const CheckedSide& side_;
  std::unordered_map<uint64_t, std::vector<size_t>> rows_;
};

class ErrorLines {
 public:
  ErrorLines(const CheckedData& data, const OutOfFold& found, const SuspectLabels& suspects)
      : data_(data), found_(found), suspects_(suspects), equal_(data.train) {}

  static constexpr const char* kHeader =
      "file,line,text,label,likely_label,probability,likely_probability,confident,reason\n";

  std::string line(const SuspectLabel& suspect) const {
    const auto row = size_t(suspect.row);
    std::string out = place_of(data_.train, suspect.row);
    for (const std::string_view value :
         {std::string_view(data_.train.texts[row]), name(suspect.given), name(suspect.likely)}) {
      out += ',';
      append_csv_value(value, out);
    }
    out +=
        concat(",", probability(suspect, suspect.given), ",", probability(suspect, suspect.likely),
               ",", suspect.is_confident ? "yes" : "no", ",");
    append_csv_value(reason(suspect), out);
    return out + "\n";
  }

 private:
  std::string_view name(int32_t label) const { return data_.labels.names()[size_t(label)]; }
  float probability(const SuspectLabel& suspect, int32_t label) const {
    return found_.row(suspect.row)[size_t(label)];
  }
  // "'Food' (95.0 %, where rows of this label have 87.8 %)"
  std::string likeness(const SuspectLabel& suspect, int32_t label) const {
    return concat("'", name(label), "' (", in_percent(double(probability(suspect, label))),
                  " %, where rows of this label have ", in_percent(suspects_.means[size_t(label)]),
                  " %)");
  }
  std::string reason(const SuspectLabel& suspect) const {
    return concat("reads like ", likeness(suspect, suspect.likely), ", not like ",
                  likeness(suspect, suspect.given), equal_.contradiction(suspect.row));
  }

  const CheckedData& data_;
  const OutOfFold& found_;
  const SuspectLabels& suspects_;
  EqualTexts equal_;
};

void write_errors(const CheckedData& data, const OutOfFold& found, const SuspectLabels& suspects,
                  const WriteText& write) {
  const ErrorLines lines(data, found, suspects);
  write(ErrorLines::kHeader);
  for (const SuspectLabel& suspect : suspects.rows) write(lines.line(suspect));
}

void write_probabilities(const CheckedData& data, const OutOfFold& found, const WriteText& write) {
  std::vector<std::string> names{"file", "line", "label"};
  for (const std::string& label : data.labels.names()) names.push_back("probability:" + label);
  std::string lines;
  append_csv_row(names, lines);
  for (int64_t i = 0; i < found.rows(); ++i) {
    lines += place_of(data.train, i) + ",";
    append_csv_value(data.train.labels[size_t(i)], lines);
    for (const float probability : found.row(i)) lines += concat(",", probability);
    lines += '\n';
    write(lines);
    lines.clear();
  }
}

Finding finding_of(const SuspectLabels& suspects, int64_t rows) {
  int64_t confident = 0;
  for (const SuspectLabel& suspect : suspects.rows) confident += suspect.is_confident;
  const auto count = [](int64_t of) { return with_thousands(double(of)); };
  std::string text = concat(count(confident), confident == 1 ? " row of " : " rows of ",
                            count(rows), " (", percent(confident, rows),
                            ") may have a wrong label: column 'confident' of --label-errors; for ",
                            count(int64_t(suspects.rows.size()) - confident),
                            " more another label is likelier, but not surely");
  if (suspects.unjudged > 0) {
    text +=
        concat("; ", counted(suspects.unjudged, "row"), suspects.unjudged == 1 ? " has" : " have",
               " a label that no other text has, and cannot be judged");
  }
  return {FindingLevel::note, "label-errors", std::move(text), confident};
}

}  // namespace

void find_label_errors(const CheckedData& data, const LabelErrorRequest& request, Findings& out) {
  const OutOfFold found =
      out_of_fold(data, request.folds, request.write_errors ? "--label-errors" : "--out-of-fold");
  if (request.write_probabilities) write_probabilities(data, found, request.write_probabilities);
  if (!request.write_errors) return;
  const SuspectLabels suspects = suspect_labels(found);
  write_errors(data, found, suspects, request.write_errors);
  out.push_back(finding_of(suspects, found.rows()));
}

}  // namespace finetune

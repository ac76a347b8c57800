// Shows what a classifier confused: pairs of labels, scores of each label, the worst rows.
#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "core/error.h"
#include "core/files/file_kind.h"
#include "core/log.h"
#include "core/text/counted.h"
#include "core/text/shown_numbers.h"
#include "core/text/text.h"
#include "data/labels.h"
#include "experiments/report/row_texts.h"
#include "experiments/report/sections.h"

namespace finetune {
namespace {

constexpr size_t kMostMatrixLabels = 30;  // of a confusion matrix
constexpr size_t kMostTableRows = 1000;   // of a table
constexpr size_t kMostLabelBytes = 200;
constexpr size_t kMostRowPairs = 64;  // of one row: missed labels times wrong ones

struct ConfusedPair {
  int32_t truth = 0, predicted = 0;
  int64_t rows = 0;
};

// A wrongly predicted row.
struct WrongRow {
  size_t row = 0;
  int64_t wrong_labels = 0;
  double probability = 0;  // the highest probability of a wrong label
};

// Counts the saved labels and writes the section.
class LabelReport {
 public:
  LabelReport(const RunRecord& run, const ExplainRows& explain)
      : run_(run),
        explain_(explain),
        separator_(run.option("multi-label")),
        saved_(read_saved_labels(run)) {
    order_names();
    classes_.resize(saved_.names.size());
    for (size_t i = 0; i < rows(); ++i) count_row(i);
    const int64_t all = int64_t(rows());
    const int64_t whole = all - int64_t(wrong_.size());
    double accuracy = 0;
    if (single()) {
      SingleLabelScores scores = single_label_scores(std::move(classes_));
      accuracy = scores.accuracy;
      classes_ = std::move(scores.classes);
    } else {
      MultiLabelScores scores = multi_label_scores(std::move(classes_), whole, all);
      accuracy = scores.accuracy;
      classes_ = std::move(scores.classes);
    }
    const std::string mismatch = metric_mismatch(run, "eval_accuracy", accuracy);
    if (!mismatch.empty()) throw data_error(mismatch);
  }

  std::string html() const {
    const RowTexts texts(run_, saved_);
    const std::string out =
        concat("<h3>How sure it is</h3>\n<div class=\"figures\">\n",
               sureness_html(run_, calibration_, single()),
               "</div>\n<h3>Where it errs</h3>\n<div class=\"tables\">\n", pairs_html(),
               scores_html(), "</div>\n", single() ? matrix_html() : "", worst_html(texts),
               "<h3>The evaluated rows</h3>\n<div class=\"tables\">\n", counts_html(),
               texts.lengths_html(is_wrong_), "</div>\n");
    saved_.table.check_intact();
    return out;
  }

 private:
  bool single() const { return separator_.empty(); }
  size_t rows() const { return saved_.table.rows().size(); }
  const std::string& name(size_t id) const { return saved_.names[id]; }

  // Ranks the labels in the model's order, which is sorted by name.
  void order_names() {
    const std::vector<std::string_view> names(saved_.names.begin(), saved_.names.end());
    const LabelMap map = LabelMap::from_values(names);
    rank_.resize(saved_.names.size());
    for (size_t id = 0; id < saved_.names.size(); ++id) rank_[id] = map.find(saved_.names[id]);
  }

  void count_row(size_t i) {
    const auto truth = saved_.truth[int64_t(i)], predicted = saved_.predicted[int64_t(i)];
    std::vector<int32_t> missed, extra;
    std::set_difference(truth.begin(), truth.end(), predicted.begin(), predicted.end(),
                        std::back_inserter(missed));
    std::set_difference(predicted.begin(), predicted.end(), truth.begin(), truth.end(),
                        std::back_inserter(extra));
    if (single())
      count_label(classes_, truth[0], predicted[0]);
    else
      count_labels(classes_, truth, predicted);
    const bool counts_pairs = missed.size() * extra.size() <= kMostRowPairs;
    rows_without_pairs_ += !counts_pairs;
    for (int32_t t : missed) {
      if (!counts_pairs) break;
      for (int32_t p : extra) ++pairs_[uint64_t(t) << 32 | uint64_t(p)];
    }
    const bool wrong = !missed.empty() || !extra.empty();
    is_wrong_.push_back(wrong);
    const double highest = count_probabilities(i, truth);
    if (wrong) wrong_.push_back({i, int64_t(missed.size() + extra.size()), highest});
  }

  // Returns the highest probability of a label that is wrong.
  double count_probabilities(size_t i, std::span<const int32_t> truth) {
    const std::string_view all = saved_.probability(i);
    double highest = 0;
    auto add = [&](std::string_view text, bool right) {
      const double probability = *finite_number(text);
      calibration_.add(probability, right);
      if (!right) highest = std::max(highest, probability);
    };
    if (single()) {
      add(all, saved_.predicted[int64_t(i)][0] == truth[0]);
      return highest;
    }
    if (all.empty()) return highest;
    // Predicted names and their probabilities have the same order.
    const auto names =
        split_labels(saved_.table.rows()[i].values[saved_.table.columns().size() - 2], separator_);
    const auto probabilities = split_labels(all, separator_);
    std::unordered_set<std::string_view> right;
    for (int32_t id : truth) right.insert(name(size_t(id)));
    for (size_t k = 0; k < names.size(); ++k) add(probabilities[k], right.contains(names[k]));
    return highest;
  }

  std::vector<ConfusedPair> most_confused() const {
    std::vector<ConfusedPair> pairs;
    for (const auto& [key, count] : pairs_) {
      pairs.push_back({int32_t(key >> 32), int32_t(key & 0xFFFFFFFF), count});
    }
    std::sort(pairs.begin(), pairs.end(), [&](const ConfusedPair& a, const ConfusedPair& b) {
      if (a.rows != b.rows) return a.rows > b.rows;
      if (a.truth != b.truth) return rank_[size_t(a.truth)] < rank_[size_t(b.truth)];
      return rank_[size_t(a.predicted)] < rank_[size_t(b.predicted)];
    });
    return pairs;
  }

  // Returns the labels' ids sorted by `before`, then by name.
  template <typename Before>
  std::vector<size_t> ordered_labels(Before before) const {
    std::vector<size_t> ids(classes_.size());
    std::iota(ids.begin(), ids.end(), size_t{0});
    std::sort(ids.begin(), ids.end(), [&](size_t a, size_t b) {
      if (before(classes_[a], classes_[b])) return true;
      if (before(classes_[b], classes_[a])) return false;
      return rank_[a] < rank_[b];
    });
    return ids;
  }

  std::string pairs_html() const {
    const std::vector<ConfusedPair> pairs = most_confused();
    const std::string without = rows_without_pairs_ == 0
                                    ? ""
                                    : concat(" Without ", counted(rows_without_pairs_, "row"),
                                             " of more than ", kMostRowPairs, " pairs.");
    if (pairs.empty()) {
      return without.empty() ? ""
                             : concat("<p class=\"note\">No confused labels.", without, "</p>\n");
    }
    const std::string title = "The most confused labels";
    HtmlTable table(title, {"true", "predicted", "rows", "share of the true label's rows"}, true);
    const double most = double(pairs.front().rows);
    for (const ConfusedPair& pair : pairs) {
      table.name(name(size_t(pair.truth)), kMostLabelBytes);
      table.text(name(size_t(pair.predicted)), kMostLabelBytes);
      table.bar(double(pair.rows), most, "wrong");
      table.number(double(pair.rows) / double(classes_[size_t(pair.truth)].support)).end_row();
      if (table.rows() == int64_t(kMostTableRows)) break;
    }
    table.note(concat(counted(pairs.size(), "pair"), " of true and predicted label.", without));
    return concat("<section>\n<h4>", title, "</h4>\n", table.region(true), "</section>\n");
  }

  std::string scores_html() const {
    const std::string title = "F1 of each label, the worst first";
    HtmlTable table(title, {"label", "precision", "recall", "F1", "rows"}, true);
    const double most = largest([](const ClassScores& c) { return c.support; });
    for (size_t id : ordered_labels([](const ClassScores&a, const ClassScores&b) {
           return a.f1 != b.f1 ? a.f1 < b.f1 : a.support > b.support;
         })) {
      const ClassScores& c = classes_[id];
      table.name(name(id), kMostLabelBytes).number(c.precision).number(c.recall);
      table.bar(c.f1, 1, "right").bar(double(c.support), most, "other").end_row();
      if (table.rows() == int64_t(kMostTableRows)) break;
    }
    return concat("<section>\n<h4>", title, "</h4>\n", table.region(true), "</section>\n");
  }

  std::string counts_html() const {
    const std::string title = "How often each label occurs";
    HtmlTable table(title, {"label", "true", "predicted", "both"}, true);
    const double most =
        largest([](const ClassScores& c) { return std::max(c.support, c.predicted); });
    for (size_t id : ordered_labels([](const ClassScores&a, const ClassScores&b) {
           return a.support != b.support ? a.support > b.support : a.predicted > b.predicted;
         })) {
      const ClassScores& c = classes_[id];
      table.name(name(id), kMostLabelBytes).bar(double(c.support), most, "right");
      table.bar(double(c.predicted), most, "other").number(double(c.correct)).end_row();
      if (table.rows() == int64_t(kMostTableRows)) break;
    }
    return concat("<section>\n<h4>", title, "</h4>\n", table.region(true), "</section>\n");
  }

  template <typename Count>
  double largest(Count count) const {
    double most = 0;
    for (const ClassScores& c : classes_) most = std::max(most, double(count(c)));
    return most;
  }

  // Draws the confusion matrix; if there are many labels, of those with the most errors.
  std::string matrix_html() const {
    std::vector<size_t> ids = ordered_labels([](const ClassScores& a, const ClassScores& b) {
      const auto errors = [](const ClassScores& c) {
        return c.support + c.predicted - 2 * c.correct;
      };
      return errors(a) > errors(b);
    });
    const bool all = ids.size() <= kMostMatrixLabels;
    if (!all) ids.resize(kMostMatrixLabels);
    std::sort(ids.begin(), ids.end(), [&](size_t a, size_t b) { return rank_[a] < rank_[b]; });
    std::vector<std::string> names, header{"true \\ predicted"};
    for (size_t id : ids) names.push_back(name(id));
    header.insert(header.end(), names.begin(), names.end());
    const std::string title =
        all ? "Confusion matrix"
            : concat("Confusion matrix of the ", ids.size(), " labels with the most errors");
    HtmlTable table(title, header);
    std::vector<std::vector<int64_t>> counts;
    for (size_t t : ids) {
      counts.emplace_back();
      table.name(name(t), kMostLabelBytes);
      for (size_t p : ids) {
        const auto found = pairs_.find(uint64_t(t) << 32 | uint64_t(p));
        counts.back().push_back(t == p                  ? classes_[t].correct
                                : found == pairs_.end() ? 0
                                                        : found->second);
        table.number(double(counts.back().back()));
      }
      table.end_row();
    }
    Picture picture = confusion_picture(title, names, counts);
    picture.note = "The darker a cell, the larger its share of the true label's rows.";
    return figure_html(picture, table);
  }

  std::string worst_html(const RowTexts& texts) const {
    if (wrong_.empty()) return "<p>No row is wrong.</p>\n";
    std::vector<WrongRow> sorted = wrong_;
    std::stable_sort(sorted.begin(), sorted.end(), [](const WrongRow& a, const WrongRow& b) {
      return a.wrong_labels != b.wrong_labels ? a.wrong_labels > b.wrong_labels
                                              : a.probability > b.probability;
    });
    std::vector<size_t> shown;                       // into sorted
    std::unordered_map<std::string, int64_t> times;  // by text, right and predicted label
    const size_t predicted_column = saved_.table.columns().size() - 2;
    auto key_of = [&](const WrongRow& wrong) {
      const auto values = saved_.table.rows()[wrong.row].values;
      const std::string text = texts.known() ? texts.text(wrong.row) : concat(wrong.row);
      return concat(text.size(), ":", text, values[saved_.label].size(), ":", values[saved_.label],
                    values[predicted_column]);
    };
    for (size_t i = 0; i < sorted.size(); ++i) {
      if (++times[key_of(sorted[i])] == 1 && int64_t(shown.size()) < kMostErrors)
        shown.push_back(i);
    }
    const bool is_before = is_before_calibration(run_);
    std::vector<std::string> header{"row", "times", "true", "predicted",
                                    is_before ? "probability before calibration" : "probability"};
    if (texts.known()) header.insert(header.begin() + 2, "text");
    std::vector<size_t> shown_rows;
    for (size_t i : shown) shown_rows.push_back(sorted[i].row);
    const auto [words, words_note] = words_of(shown_rows);
    if (!words.empty()) header.push_back("words that made it");
    HtmlTable table("The worst errors", header, true);
    for (size_t i : shown) {
      const WrongRow& wrong = sorted[i];
      const auto values = saved_.table.rows()[wrong.row].values;
      table.number(double(wrong.row + 1)).number(double(times[key_of(wrong)]));
      if (texts.known()) table.text(texts.text(wrong.row), kMostTextBytes);
      table.text(values[saved_.label], kMostLabelBytes)
          .text(values[predicted_column], kMostLabelBytes);
      if (single())
        table.number(wrong.probability);
      else
        table.text(few_digits(values.back()), kMostLabelBytes);
      if (!words.empty()) table.text(words[size_t(table.rows())], kMostTextBytes);
      table.end_row();
    }
    table.note(concat(
        wrong_.size(), " of ", counted(rows(), "row"),
        wrong_.size() == 1 ? " is wrong" : " are wrong",
        times.size() < wrong_.size() ? concat(", ", counted(times.size(), "different one")) : "",
        "; ", single() ? "the surest" : "those with the most wrong labels, then the surest,",
        " first. A row's number counts from 1, as in predictions.csv."));
    return concat(
        "<h4>The worst errors",
        is_before ? ", with probabilities before calibration (those of predict are calibrated)"
                  : "",
        "</h4>\n", table.region(true), words_note,
        texts.known() ? "" : "<p class=\"note\">The columns of the texts are not known.</p>\n");
  }

  // Each probability of a row's predicted labels with three digits.
  std::string few_digits(std::string_view probabilities) const {
    std::vector<std::string> shown;
    for (const std::string_view each : split_labels(probabilities, separator_)) {
      shown.push_back(three_digits(finite_number(each).value_or(0)));
    }
    return join(shown, separator_ + " ");
  }

  // Returns the words that made each row's label (none if unknown), and a sentence about them.
  std::pair<std::vector<std::string>, std::string> words_of(const std::vector<size_t>& rows) const {
    if (!explain_ || !single()) return {};
    std::vector<std::string> columns = saved_.table.columns();
    columns.resize(columns.size() - saved_.added);
    std::vector<std::vector<std::string>> values;
    for (size_t row : rows) {
      const auto all = saved_.table.rows()[row].values;
      values.emplace_back(all.begin(), all.begin() + ptrdiff_t(columns.size()));
    }
    try {
      return {explain_(run_, columns, values),
              "<p class=\"note\">A word's number is how far the predicted label's lead over the "
              "next one falls without the word (natural logarithm of the ratio of the two "
              "probabilities).</p>\n"};
    } catch (const Error& error) {
      warn("the worst errors of ", printable_path(run_.directory),
           " are not explained: ", error.what());
      return {{},
              concat("<p class=\"note\">The errors are not explained: ",
                     markup_escaped(error.what(), 1000), ".</p>\n")};
    }
  }

  const RunRecord& run_;
  const ExplainRows& explain_;
  std::string separator_;
  SavedLabels saved_;
  std::vector<int32_t> rank_;  // by id: the place in the order of names
  std::vector<ClassScores> classes_;
  std::unordered_map<uint64_t, int64_t> pairs_;  // by truth << 32 | prediction, if they differ
  int64_t rows_without_pairs_ = 0;
  Calibration calibration_;
  std::vector<bool> is_wrong_;
  std::vector<WrongRow> wrong_;
};

}  // namespace

std::string labels_html(const RunRecord& run, const ExplainRows& explain) {
  return LabelReport(run, explain).html();
}

}  // namespace finetune

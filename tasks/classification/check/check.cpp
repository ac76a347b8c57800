// Checks the data, and trains the baselines on the rows that training would see.
#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/text/text.h"
#include "tasks/classification/check/findings.h"
#include "tasks/classification/label_errors/label_errors.h"
#include "tasks/classification/ngrams/baselines.h"
#include "tasks/classification/rows/row_labels.h"
#include "tasks/classification/rows/row_split.h"
#include "tasks/data_check.h"
#include "tasks/texts/encoded_rows.h"

namespace finetune {
namespace {

// Some rows of a side, in the form that a task has them.
struct Part {
  ClassificationSide side;
  std::vector<RowValues> rows;
};

Part part_of(const ClassificationData& data, const TaskOptions& options, const CheckedSide& checked,
             const std::vector<uint32_t>* places) {
  Part part;
  const LabelMap unknown(data.unknown_labels);
  const size_t count = places ? places->size() : checked.size();
  for (size_t k = 0; k < count; ++k) {
    const size_t i = places ? (*places)[k] : k;
    part.rows.push_back(checked.values(i));
    add_target(checked.labels[i], data, unknown, options, part.side);
  }
  return part;
}

// The same as find_overlap(), for held-out rows.
void find_repeated(const CheckedSide& side, const HoldOut& parts, Findings& out) {
  std::vector<TextSum> sums;
  const auto sum = [&](uint32_t place) { return text_sum_of(side.values(place), side.text); };
  for (uint32_t place : parts.train) sums.push_back(sum(place));
  const TrainedTexts trained(std::move(sums));
  const auto repeated = std::count_if(parts.eval.begin(), parts.eval.end(),
                                      [&](uint32_t place) { return trained.contains(sum(place)); });
  const auto all = int64_t(parts.eval.size());
  if (repeated == 0) return;
  out.push_back({10 * repeated > all ? FindingLevel::warning : FindingLevel::note, "overlap",
                 concat(counted(repeated, "held-out row", "held-out rows"), " of ", all, " (",
                        percent(repeated, all), ") ", repeated == 1 ? "has" : "have",
                        " a text that is trained on, too: metrics count what is merely remembered; "
                        "--eval-split distinct keeps equal texts on one side"),
                 repeated});
}

void find_baselines(const CheckedData& checked, DataCheck& out) {
  ClassificationData data;
  data.problem = checked.problem;
  data.labels = checked.labels;
  data.unknown_labels = unknown_labels(checked);
  HoldOut parts;
  if (!checked.has_eval) {
    TaskOptions options = checked.options;
    if (options.eval_fraction == 0) options.eval_fraction = kHeldOutOfCheck;
    const UsableRows usable{*checked.train.table, checked.train.rows, checked.train.text,
                            checked.train.label};
    parts = split_rows(usable, options, data);
    if (parts.train.empty() || parts.eval.empty()) {
      out.findings.push_back(
          {FindingLevel::note, "no-baselines",
           concat("no baselines: of ", counted(int64_t(checked.train.size()), "row", "rows"),
                  " none can be held out to measure them on"),
           int64_t(checked.train.size())});
      return;
    }
    out.held_out_rows = int64_t(parts.eval.size());
    find_repeated(checked.train, parts, out.findings);
    if (std::string fault = split_fault(usable, parts, options, data); !fault.empty()) {
      out.findings.push_back({FindingLevel::warning, "split", std::move(fault), out.held_out_rows});
    }
  }
  const auto rows_of = [&](const Part& part, const TextColumns& columns, bool is_training) {
    return text_rows_of(
        {part.rows, columns, part.side, data.problem, is_training, checked.options.ngram_baseline});
  };
  const Part train =
      part_of(data, checked.options, checked.train, checked.has_eval ? nullptr : &parts.train);
  const CheckedSide& evaluated = checked.has_eval ? checked.eval : checked.train;
  const Part eval =
      part_of(data, checked.options, evaluated, checked.has_eval ? nullptr : &parts.eval);
  const Majority majority = majority_of(data, train.side);
  const auto compute = [&](bool ngrams) {
    const auto train_rows = rows_of(train, checked.train.text, true),
               eval_rows = rows_of(eval, evaluated.text, false);
    Baselines found = baselines_of(data, majority, ngrams ? train_rows.get() : nullptr, *eval_rows);
    out.baselines = std::move(found.metrics);
    out.lines = std::move(found.lines);
  };
  const auto rows = int64_t(eval.rows.size());
  if (data.labels.size() > kMostNgramLabels && checked.options.ngram_baseline) {
    compute(false);
    out.findings.push_back({FindingLevel::note, "no-baselines",
                            concat("no n-gram baseline: it takes at most ", kMostNgramLabels,
                                   " labels, these are ", data.labels.size()),
                            rows});
    return;
  }
  try {
    compute(checked.options.ngram_baseline);
  } catch (const Error& error) {  // the machine failed: the findings are still right
    out.findings.push_back({FindingLevel::warning, "no-baselines",
                            concat("no n-gram baseline: ", error.what()), rows});
    if (error.code() == ExitCode::device) compute(false);
  }
}

}  // namespace

DataCheck check_data(const TaskOptions& options, const TaskModel* model,
                     const std::function<void(const char* stage)>& on_stage,
                     const LabelErrorRequest* label_errors) {
  const auto begin = [&](const char* stage) {
    if (on_stage) on_stage(stage);
  };
  begin("reading");
  int64_t max_length = 0;
  if (model) {
    max_length = checked_max_length(options.max_length, model->config, model->tokenizer.special(),
                                    !options.text_pair_column.empty());
  }
  const CheckedData data = read_checked_data(options);
  DataCheck out;
  out.problem = data.problem;
  out.train_rows = int64_t(data.train.size());
  out.eval_rows = int64_t(data.eval.size());
  out.labels = data.labels.size();
  begin("comparing texts and labels");
  for (const auto find : {find_faulty_rows, find_label_faults, find_overlap, find_labels_in_texts,
                          find_telling_columns, find_equal_texts, find_label_shift,
                          find_rare_labels, find_similar_labels}) {
    find(data, out.findings);
  }
  if (model) {
    begin("counting tokens");
    find_cut_texts(data, {model->tokenizer, max_length, model->config.max_length()}, out.findings);
  }
  if (label_errors) {
    begin("looking for wrong labels");
    find_label_errors(data, *label_errors, out.findings);
  }
  const bool learnable =
      std::none_of(out.findings.begin(), out.findings.end(), [](const Finding& finding) {
        return finding.kind == "one-class" || finding.kind == "one-value" ||
               finding.kind == "large-numbers";
      });
  if (learnable) {
    begin(options.ngram_baseline ? "training the n-gram baseline" : "measuring the baseline");
    find_baselines(data, out);
  }
  std::stable_sort(out.findings.begin(), out.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.level < b.level; });
  return out;
}

}  // namespace finetune

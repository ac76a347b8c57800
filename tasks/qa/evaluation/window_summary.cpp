// Formats the log's lines about questions, windows and cut questions.
#include "tasks/qa/evaluation/window_summary.h"

#include <algorithm>

#include "core/text/counted.h"
#include "core/text/text.h"

namespace finetune {

void WindowTotals::add(const QaWindows& piece) {
  windows += piece.windows();
  tokens += piece.set.samples.offsets.back();
  split_questions += piece.split_questions;
  cut_questions += piece.set.truncated;
  reduced_strides += piece.reduced_strides;
}

namespace {

std::string taken(int64_t count, std::string_view how) {
  return concat(count, " ", count == 1 ? "is" : "are", " ", how);
}

// A warning about questions whose first answer is not at its answer_start, or "".
std::string misplaced_warning(std::string_view name, const SquadData& data) {
  int64_t later = 0, moved = 0, nowhere = 0;
  const std::string* first = nullptr;
  for (const SquadQuestion& question : data.questions) {
    later += question.found == TargetFound::later_answer;
    moved += question.found == TargetFound::only_place;
    nowhere += question.found == TargetFound::nowhere;
    if (!first && later + moved + nowhere > 0) first = &question.id;
  }
  const int64_t all = later + moved + nowhere + data.left_out;
  if (all == 0) return "";
  std::vector<std::string> parts;
  if (later > 0) parts.push_back(taken(later, "taken from a later answer of the question"));
  if (moved > 0) parts.push_back(taken(moved, "taken where its text occurs, which is only once"));
  if (nowhere > 0) parts.push_back(taken(nowhere, "scored by its text, but not part of eval_loss"));
  if (data.left_out > 0) parts.push_back(taken(data.left_out, "left out of training"));
  return concat("warning: ", name, ": ",
                counted(all, "first answer is not at its", "first answers are not at their"),
                " answer_start in the context: ", join(parts, ", "),
                first ? concat("; the first is question ", in_quotes(*first)) : "");
}

std::string contradiction_warning(std::string_view name, const SquadData& data) {
  int64_t count = 0;
  const std::string* first = nullptr;
  for (const SquadQuestion& question : data.questions) {
    if (!question.contradicts_flag) continue;
    if (count++ == 0) first = &question.id;
  }
  if (count == 0) return "";
  return concat("warning: ", name, ": the is_impossible of ", counted(count, "question"), " ",
                count == 1 ? "contradicts its" : "contradicts their",
                " answers, which decide; the first is question ", in_quotes(*first));
}

}  // namespace

std::vector<std::string> describe_questions(std::string_view name, const SquadData& data,
                                            int squad_version) {
  std::vector<std::string> lines;
  auto line = [&](const auto&... parts) { lines.push_back(concat(name, ": ", parts...)); };
  std::vector<bool> asked_about(data.contexts.size());
  int64_t unanswerable = 0;
  for (const SquadQuestion& question : data.questions) {
    asked_about[question.context] = true;
    unanswerable += question.answers.empty();
  }
  line(counted(data.questions.size(), "question"), " on ",
       counted(std::count(asked_about.begin(), asked_about.end(), true), "context"));
  if (unanswerable > 0) {
    line(counted(unanswerable, "question has", "questions have"), " no answer; version ",
         squad_version, " rules apply");
  }
  for (const std::string& warning :
       {misplaced_warning(name, data), contradiction_warning(name, data)}) {
    if (!warning.empty()) lines.push_back(warning);
  }
  return lines;
}

std::vector<std::string> describe_windows(std::string_view name, const WindowTotals& totals,
                                          const WindowOptions& options) {
  std::vector<std::string> lines;
  auto line = [&](const auto&... parts) { lines.push_back(concat(name, ": ", parts...)); };
  auto warning = [&](const auto&... parts) {
    lines.push_back(concat("warning: ", name, ": ", parts...));
  };
  line(counted(totals.windows, "window"), " of at most ", options.max_length, " tokens (mean ",
       format_fixed(double(totals.tokens) / double(totals.windows), 1), "); ",
       counted(totals.split_questions, "question needs", "questions need"),
       " more than one window");
  if (totals.cut_questions > 0) {
    warning(
        counted(totals.cut_questions, "question is too long to stand beside its context and is cut",
                "questions are too long to stand beside their context and are cut"),
        " at the end; a larger --max-length avoids it");
  }
  if (totals.reduced_strides > 0) {
    warning("for ", counted(totals.reduced_strides, "question"), " --doc-stride ",
            options.doc_stride,
            " does not fit into what the question leaves for the context; their windows overlap by "
            "half of it");
  }
  return lines;
}

}  // namespace finetune

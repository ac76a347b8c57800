// Words the log's lines about questions, windows and questions that are cut.
#include "tasks/qa/evaluation/summary.h"

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
  if (data.misplaced_answers > 0) {
    line("warning: ",
         counted(data.misplaced_answers, "first answer is not at its",
                 "first answers are not at their"),
         " answer_start in the context and ", data.misplaced_answers == 1 ? "counts" : "count",
         " as not there");
  }
  return lines;
}

std::vector<std::string> describe_windows(std::string_view name, const WindowTotals& totals,
                                          const WindowOptions& options) {
  std::vector<std::string> lines;
  auto line = [&](const auto&... parts) { lines.push_back(concat(name, ": ", parts...)); };
  line(counted(totals.windows, "window"), " of at most ", options.max_length, " tokens (mean ",
       format_fixed(double(totals.tokens) / double(totals.windows), 1), "); ",
       counted(totals.split_questions, "question needs", "questions need"),
       " more than one window");
  if (totals.cut_questions > 0) {
    line(
        "warning: ",
        counted(totals.cut_questions, "question is too long to stand beside its context and is cut",
                "questions are too long to stand beside their context and are cut"),
        " at the end; a larger --max-length avoids it");
  }
  if (totals.reduced_strides > 0) {
    line("warning: for ", counted(totals.reduced_strides, "question"), " --doc-stride ",
         options.doc_stride,
         " does not fit into what the question leaves for the context; their windows overlap by "
         "half of it");
  }
  return lines;
}

}  // namespace finetune

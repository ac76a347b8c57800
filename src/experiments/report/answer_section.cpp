// Shows a run's answers: scores, calibration, and the worst answers beside the right ones.
#include <algorithm>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "core/error.h"
#include "core/files/files.h"
#include "core/text/counted.h"
#include "core/text/text.h"
#include "data/json_cursor.h"
#include "data/labels.h"
#include "experiments/report/row_texts.h"
#include "experiments/report/sections.h"
#include "train/run/fingerprint.h"

namespace finetune {
namespace {

constexpr size_t kContextBytes = 160;  // on each side of a right answer

// For each question, the probability that the n-best list gives to the predicted answer.
using AnswerProbabilities = std::vector<std::optional<double>>;

double probability_of(std::string_view text) {
  const auto number = finite_number(text);
  if (number && *number >= 0 && *number <= 1) return *number;
  throw JsonFault{0, concat(in_quotes(text), " is not a probability, from 0 to 1")};
}

std::optional<double> probability_in(JsonCursor& json, const std::string& answer) {
  std::optional<double> found;
  json.array([&] {
    std::string text;
    double probability = 0;
    json.object([&](const JsonString& key) {
      if (key.raw == "text")
        text = text_of(json.string());
      else if (key.raw == "probability")
        probability = probability_of(json.scalar());
      else
        json.skip_value();
    });
    if (!found && text == answer) found = probability;
  });
  return found;
}

// Whether the text may be one JSON object. Checked before all bytes are.
bool may_be_object(std::string_view text) {
  constexpr size_t kMostBytes = size_t{4} << 30;
  return text.size() <= kMostBytes && (text.ends_with('}') || text.ends_with("}\n"));
}

// Reads nbest_predictions.json; no probabilities if it is missing. Error(model) if it is damaged.
AnswerProbabilities answer_probabilities(const RunRecord& run, const SavedAnswers& saved) {
  AnswerProbabilities out(saved.scores.size());
  const fs::path path = run.directory / "nbest_predictions.json";
  if (!path_exists(path, ExitCode::model)) return out;
  std::unordered_map<std::string_view, size_t> ids;
  for (size_t q = 0; q < saved.data.questions.size(); ++q) ids[saved.data.questions[q].id] = q;
  const MappedFile file(path);
  try {
    if (!may_be_object(file.text()) || invalid_utf8(file.text()) != std::string_view::npos) {
      throw JsonFault{0, "it is not a JSON object"};
    }
    JsonCursor json(file.text());
    json.object([&](const JsonString& key) {
      const auto found = ids.find(text_of(key));
      const std::string* answer =
          found == ids.end() ? nullptr : saved.predictions.answers[found->second];
      if (answer)
        out[found->second] = probability_in(json, *answer);
      else
        json.skip_value();
    });
  } catch (const JsonFault& fault) {
    throw model_error(printable_path(path), ": is damaged: ", fault.what,
                      "; restore the file, or leave the run out");
  }
  file.check_intact();
  return out;
}

// Returns a note if the data files have changed since the run; empty if not, or if unknown.
std::string changed_data(const RunRecord& run) {
  std::vector<InputFile> files(run.train_files.begin(), run.train_files.end());
  files.insert(files.end(), run.eval_files.begin(), run.eval_files.end());
  for (const InputFile& file : files) {
    std::error_code error;
    if (!fs::is_regular_file(file.name, error)) return "";
  }
  if (run.data_sha256.empty() || Fingerprint(files).result() == run.data_sha256) return "";
  return "<p class=\"note\">The run's data files are not what they were (sha256): questions and "
         "contexts may be others.</p>\n";
}

std::string scores_of_answers_html(const SavedAnswers& saved) {
  Histogram histogram =
      make_histogram({0, 10, 10}, false, {{"exact", "right"}, {"not exact", "wrong"}});
  for (const AnswerScore& score : saved.scores)
    histogram.add(score.exact > 0 ? 0 : 1, 100 * score.f1);
  return histogram_html("F1 of the answers", "F1, 0 to 100", "", histogram);
}

std::string gold_text(const SquadQuestion& question) {
  std::vector<std::string> texts;
  for (const SquadAnswer& answer : question.answers) {
    if (std::find(texts.begin(), texts.end(), answer.text) == texts.end())
      texts.push_back(answer.text);
  }
  return texts.empty() ? "(no answer)" : join(texts, " | ");
}

// Returns the context around the first right answer, or its beginning, cut between characters.
std::string context_of(const SavedAnswers& saved, const SquadQuestion& question) {
  const std::string& context = saved.data.contexts[question.context];
  const auto is_inside = [&](size_t at) {
    return at > 0 && at < context.size() &&
           (static_cast<unsigned char>(context[at]) & 0xC0) == 0x80;
  };
  size_t begin = 0, end = 2 * kContextBytes;
  if (!question.answers.empty() && question.answers[0].start_byte >= 0) {
    const auto at = size_t(question.answers[0].start_byte);
    begin = at > kContextBytes ? at - kContextBytes : 0;
    end = at + question.answers[0].text.size() + kContextBytes;
  }
  end = std::min(end, context.size());
  while (is_inside(begin)) --begin;
  while (is_inside(end)) ++end;
  return concat(begin > 0 ? "…" : "", context.substr(begin, end - begin),
                end < context.size() ? "…" : "");
}

std::string worst_answers_html(const SavedAnswers& saved,
                               const AnswerProbabilities& probabilities) {
  std::vector<size_t> order;
  for (size_t q = 0; q < saved.scores.size(); ++q) {
    if (saved.scores[q].exact < 1) order.push_back(q);
  }
  if (order.empty()) return "<p>Every answer is right.</p>\n";
  const size_t wrong = order.size();
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (saved.scores[a].f1 != saved.scores[b].f1) return saved.scores[a].f1 < saved.scores[b].f1;
    return probabilities[a].value_or(0) > probabilities[b].value_or(0);
  });
  order.resize(std::min(order.size(), size_t(kMostErrors)));
  HtmlTable table("The worst answers",
                  {"id", "question", "right answers", "answer", "F1", "probability", "context"},
                  true);
  for (size_t q : order) {
    const SquadQuestion& question = saved.data.questions[q];
    const std::string* answer = saved.predictions.answers[q];
    table.text(question.id, 100).text(question.question, kMostTextBytes);
    table.text(gold_text(question), kMostTextBytes);
    table.text(!answer           ? "(not predicted)"
               : answer->empty() ? "(no answer)"
                                 : *answer,
               kMostTextBytes);
    table.number(100 * saved.scores[q].f1);
    if (probabilities[q])
      table.number(*probabilities[q]);
    else
      table.text("");
    table.text(context_of(saved, question), 2 * kMostTextBytes).end_row();
  }
  table.note(concat(wrong, " of ", counted(saved.scores.size(), "answer"),
                    wrong == 1 ? " is" : " are",
                    " not exact; the lowest F1 first, then the surest."));
  return concat("<h3>The worst answers</h3>\n", table.region(true));
}

}  // namespace

std::string answers_html(const RunRecord& run) {
  const SavedAnswers saved = read_saved_answers(run);
  double sum = 0;
  std::vector<int64_t> question_lengths, answer_lengths;
  std::vector<bool> wrong;
  for (size_t q = 0; q < saved.scores.size(); ++q) {
    const std::string* answer = saved.predictions.answers[q];
    sum += 100 * saved.scores[q].f1;
    wrong.push_back(saved.scores[q].exact < 1);
    question_lengths.push_back(int64_t(count_code_points(saved.data.questions[q].question)));
    answer_lengths.push_back(answer ? int64_t(count_code_points(*answer)) : 0);
  }
  const std::string mismatch = metric_mismatch(run, "eval_f1", sum / double(saved.scores.size()));
  if (!mismatch.empty()) throw data_error(mismatch);
  const AnswerProbabilities probabilities = answer_probabilities(run, saved);
  Calibration calibration;
  bool has_probabilities = false;
  for (size_t q = 0; q < probabilities.size(); ++q) {
    if (!probabilities[q]) continue;
    calibration.add(*probabilities[q], !wrong[q]);
    has_probabilities = true;
  }
  std::string out =
      concat(changed_data(run), "<div class=\"figures\">\n", scores_of_answers_html(saved));
  if (has_probabilities) {
    out += calibration.coverage_html("answers") + calibration.calibration_html("answers") +
           calibration.confidence_html("answers");
  } else {
    out +=
        "<p class=\"note\">No calibration: the run's nbest_predictions.json is missing or has no "
        "probabilities.</p>\n";
  }
  return concat(out, text_lengths_html("Length of the answers given", answer_lengths, wrong),
                text_lengths_html("Length of the questions", question_lengths, wrong), "</div>\n",
                worst_answers_html(saved, probabilities));
}

}  // namespace finetune

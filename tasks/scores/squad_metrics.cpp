// Normalizes answers; computes exact match, F1 and best thresholds over questions.
#include "tasks/scores/squad_metrics.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "core/text/utf8.h"
#include "core/threads/parallel.h"
#include "tasks/scores/python_text.h"

namespace finetune {
namespace {

// Python's string.punctuation: the 32 ASCII characters that are not letters, digits, white space or
// control characters.
bool is_ascii_punctuation(char32_t c) {
  return (c >= 0x21 && c <= 0x2F) || (c >= 0x3A && c <= 0x40) || (c >= 0x5B && c <= 0x60) ||
         (c >= 0x7B && c <= 0x7E);
}

bool is_article(std::u32string_view word) {
  return word == U"a" || word == U"an" || word == U"the";
}

std::vector<std::string> normalized_words(std::string_view answer) {
  std::u32string text = python_lower(decode_utf8(answer));
  std::erase_if(text, is_ascii_punctuation);
  std::vector<std::string> words;
  bool inside = false;  // whether in a word of the result
  auto put = [&](char32_t c) {
    if (is_python_space(c)) {
      inside = false;
      return;
    }
    if (!inside) words.emplace_back();
    inside = true;
    utf8::append(c, words.back());
  };
  // \b(a|an|the)\b matches exactly the runs of \w that are an article.
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && is_python_word(text[end])) ++end;
    if (end == i) {
      put(text[i++]);
    } else if (is_article(std::u32string_view(text).substr(i, end - i))) {
      put(U' ');
      i = end;
    } else {
      for (; i < end; ++i) put(text[i]);
    }
  }
  return words;
}

// The words must be sorted.
double f1_score(const std::vector<std::string>& prediction,
                const std::vector<std::string>& reference, int squad_version) {
  if (squad_version == 2 && (prediction.empty() || reference.empty())) {
    return prediction.empty() && reference.empty() ? 1.0 : 0.0;
  }
  std::vector<std::string_view> common;
  std::set_intersection(prediction.begin(), prediction.end(), reference.begin(), reference.end(),
                        std::back_inserter(common));
  if (common.empty()) return 0.0;
  double precision = double(common.size()) / double(prediction.size());
  double recall = double(common.size()) / double(reference.size());
  return (2 * precision * recall) / (precision + recall);
}

// Averages over the questions for which `take` is true, in percent.
template <typename Take>
void add_average(std::span<const ScoredQuestion> questions, Take take, const std::string& prefix,
                 bool with_total, std::map<std::string, double>& out) {
  double exact = 0, f1 = 0;
  int64_t total = 0;
  for (const ScoredQuestion& question : questions) {
    if (!take(question)) continue;
    exact += question.score.exact;
    f1 += question.score.f1;
    ++total;
  }
  if (total == 0) return;
  out[prefix + "exact_match"] = 100.0 * exact / double(total);
  out[prefix + "f1"] = 100.0 * f1 / double(total);
  if (with_total) out[prefix + "total"] = double(total);
}

// The best average over all thresholds on the no-answer scores. Starts with the answer "" to each
// question, and accepts answers in the order of their scores.
template <typename Score>
void add_best_threshold(std::span<const ScoredQuestion> questions,
                        std::span<const NoAnswerScore> no_answer, Score score,
                        const std::string& name, std::map<std::string, double>& out) {
  std::vector<NoAnswerScore> order(no_answer.begin(), no_answer.end());
  std::stable_sort(order.begin(), order.end(), [](const NoAnswerScore& a, const NoAnswerScore& b) {
    return a.value < b.value;
  });
  double current = double(std::count_if(questions.begin(), questions.end(),
                                        [](const ScoredQuestion& q) { return !q.has_answer; }));
  double best = current, threshold = 0;
  for (const NoAnswerScore& entry : order) {
    const ScoredQuestion& question = questions[entry.question];
    if (!question.predicted) continue;
    if (question.has_answer) {
      current += score(question);
    } else if (!question.answered_nothing) {
      current -= 1;
    }
    if (current > best) {
      best = current;
      threshold = entry.value;
    }
  }
  auto predicted = std::count_if(questions.begin(), questions.end(),
                                 [](const ScoredQuestion& q) { return q.predicted; });
  out["eval_best_" + name] = 100.0 * best / double(predicted);
  out["eval_best_" + name + "_threshold"] = threshold;
}

}  // namespace

std::string normalize_answer(std::string_view answer) {
  return join(normalized_words(answer), " ");
}

AnswerScore score_answer(const std::vector<SquadAnswer>& references, std::string_view prediction,
                         int squad_version) {
  std::vector<std::string> predicted = normalized_words(prediction);
  std::vector<std::string> predicted_sorted = predicted;
  std::sort(predicted_sorted.begin(), predicted_sorted.end());
  AnswerScore best;
  bool any = false;
  auto compare = [&](std::vector<std::string> words) {
    any = true;
    if (words == predicted) best.exact = 1.0;
    std::sort(words.begin(), words.end());
    best.f1 = std::max(best.f1, f1_score(predicted_sorted, words, squad_version));
  };
  for (const SquadAnswer& reference : references) {
    std::vector<std::string> words = normalized_words(reference.text);
    if (squad_version == 1 || !words.empty()) compare(std::move(words));
  }
  if (squad_version == 2 && !any) compare({});
  return best;
}

std::map<std::string, double> squad_scores(std::span<const ScoredQuestion> questions,
                                           std::span<const NoAnswerScore> no_answer,
                                           double no_answer_threshold, int squad_version) {
  std::map<std::string, double> out;
  if (squad_version == 1) {
    add_average(
        questions, [](const ScoredQuestion&) { return true; }, "eval_", false, out);
    return out;
  }
  using Question = ScoredQuestion;
  std::vector<Question> kept(questions.begin(), questions.end());
  for (const NoAnswerScore& entry : no_answer) {
    if (entry.value > no_answer_threshold) {
      double right = questions[entry.question].has_answer ? 0.0 : 1.0;
      kept[entry.question].score = {right, right};
    }
  }
  add_average(
      kept, [](const Question& q) { return q.predicted; }, "eval_", true, out);
  add_average(
      kept, [](const Question& q) { return q.predicted && q.has_answer; }, "eval_has_answer_", true,
      out);
  add_average(
      kept, [](const Question& q) { return q.predicted && !q.has_answer; }, "eval_no_answer_", true,
      out);
  if (!no_answer.empty()) {
    add_best_threshold(
        questions, no_answer, [](const Question& q) { return q.score.exact; }, "exact_match", out);
    add_best_threshold(
        questions, no_answer, [](const Question& q) { return q.score.f1; }, "f1", out);
  }
  return out;
}

std::map<std::string, double> squad_scores(const SquadData& data,
                                           const SquadPredictions& predictions, int squad_version) {
  const size_t questions = data.questions.size();
  const auto& answers = predictions.answers;
  FINETUNE_CHECK(answers.size() == questions);
  std::vector<ScoredQuestion> scored(questions);
  parallel_ranges(int64_t(questions), 256, [&](int64_t begin, int64_t end) {
    for (size_t q = size_t(begin); q < size_t(end); ++q) {
      const std::vector<SquadAnswer>& references = data.questions[q].answers;
      scored[q].predicted = answers[q] != nullptr;
      scored[q].has_answer = !references.empty();
      if (!answers[q]) continue;
      scored[q].answered_nothing = answers[q]->empty();
      scored[q].score = score_answer(references, *answers[q], squad_version);
    }
  });
  return squad_scores(scored, predictions.no_answer, predictions.no_answer_threshold,
                      squad_version);
}

}  // namespace finetune

// Finds the best spans of windows, and makes n-best lists with probabilities.
#include "tasks/qa/evaluation/postprocess.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/text/utf8.h"
#include "tokenizer/unicode/unicode_tables.h"

namespace finetune {
namespace {

// The indices of the `count` largest of logits[0], logits[2], ..., best first.
std::vector<int32_t> largest(const float* logits, int64_t length, int64_t count) {
  std::vector<int32_t> order{};
  order.resize(size_t(length));
  std::iota(order.begin(), order.end(), 0);
  auto middle = order.begin() + std::min(count, length);
  std::partial_sort(order.begin(), middle, order.end(), [&](int32_t a, int32_t b) {
    float x = logits[2 * a], y = logits[2 * b];
    return x > y || (x == y && a > b);
  });
  order.erase(middle, order.end());
  return order;
}

// Tokens of some vocabularies include the white space before their word; answers must not.
std::string_view without_outer_space(std::string_view text) {
  while (!text.empty()) {
    const utf8::Decoded first = utf8::decode(text, 0);
    if (!unicode::has(first.c, unicode::kSpace)) break;
    text.remove_prefix(first.length);
  }
  while (!text.empty()) {
    const utf8::Decoded last = utf8::decode_before(text, text.size());
    if (!unicode::has(last.c, unicode::kSpace)) break;
    text.remove_suffix(last.length);
  }
  return text;
}

void keep_best(std::vector<Candidate>& candidates, int64_t n_best) {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.score() > b.score(); });
  if (int64_t(candidates.size()) > n_best) candidates.resize(size_t(n_best));
}

void set_probabilities(std::vector<RankedAnswer>& answers) {
  float highest = -INFINITY;
  for (const RankedAnswer& a : answers) highest = std::max(highest, a.start_logit + a.end_logit);
  float sum = 0;
  for (RankedAnswer& a : answers) {
    a.probability = std::exp(a.start_logit + a.end_logit - highest);
    sum += a.probability;
  }
  for (RankedAnswer& a : answers) a.probability /= sum;
}

}  // namespace

WindowAnswers reduce_window(const float* logits, int64_t length, int64_t context_begin,
                            int64_t context_length, const uint32_t* token_begins,
                            const uint32_t* token_ends, const AnswerOptions& options) {
  WindowAnswers out;
  out.null_start = logits[0];
  out.null_end = logits[1];
  const int64_t context_end = context_begin + context_length;
  auto in_context = [&](int64_t token) { return token >= context_begin && token < context_end; };
  const std::vector<int32_t> starts = largest(logits, length, options.n_best);
  const std::vector<int32_t> ends = largest(logits + 1, length, options.n_best);
  for (int64_t start : starts) {
    if (!in_context(start)) continue;
    for (int64_t end : ends) {
      if (!in_context(end) || end < start || end - start >= options.max_answer_length) continue;
      out.candidates.push_back({logits[2 * start], logits[2 * end + 1],
                                token_begins[start - context_begin],
                                token_ends[end - context_begin]});
    }
  }
  keep_best(out.candidates, options.n_best);
  out.candidates.shrink_to_fit();
  return out;
}

QuestionAnswer answer_question(std::string_view context, const WindowAnswers* windows,
                               int64_t count, const AnswerOptions& options) {
  const bool with_null = options.squad_version == 2;
  std::vector<Candidate> candidates;
  Candidate null;
  for (int64_t w = 0; w < count; ++w) {
    const WindowAnswers& window = windows[w];
    candidates.insert(candidates.end(), window.candidates.begin(), window.candidates.end());
    if (w == 0 || window.null_start + window.null_end < null.score()) {
      null = {window.null_start, window.null_end, 0, 0};
    }
  }
  if (with_null) candidates.push_back(null);
  keep_best(candidates, options.n_best);
  auto is_null = [](const Candidate& c) { return c.begin == 0 && c.end == 0; };
  if (with_null && std::none_of(candidates.begin(), candidates.end(), is_null)) {
    candidates.push_back(null);
  }

  QuestionAnswer out;
  bool any_text = false;
  for (const Candidate& c : candidates) {
    std::string_view text =
        c.begin < c.end ? without_outer_space(context.substr(c.begin, c.end - c.begin)) : "";
    any_text |= !text.empty();
    out.n_best.push_back({text, c.start_logit, c.end_logit, 0});
  }
  // Without any span there is no answer; like Hugging Face, the answer is then "empty".
  if (out.n_best.empty() || (!any_text && (with_null || out.n_best.size() == 1))) {
    out.n_best.insert(out.n_best.begin(), RankedAnswer{"empty", 0, 0, 0});
  }
  set_probabilities(out.n_best);
  if (!with_null) {
    out.text = out.n_best[0].text;
    return out;
  }
  const RankedAnswer& best = *std::find_if(out.n_best.begin(), out.n_best.end(),
                                           [](const RankedAnswer& a) { return !a.text.empty(); });
  out.null_odds = null.score() - best.start_logit - best.end_logit;
  out.text = double(out.null_odds) > options.null_threshold ? std::string_view() : best.text;
  return out;
}

}  // namespace finetune

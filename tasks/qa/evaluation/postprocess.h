// Converts start and end logits to answers like Hugging Face's postprocess_qa_predictions. N-best
// lists, null odds and the rules of versions 1 and 2 are those of
// examples/pytorch/question-answering/utils_qa.py, in single precision as there. Of equal logits,
// the later token's counts as larger.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace finetune {

struct AnswerOptions {
  int64_t n_best = 20;
  int64_t max_answer_length = 30;  // tokens
  double null_threshold = 0;       // version 2: "" if null score - best score is larger
  int squad_version = 1;
};

// A possible answer: context bytes [begin, end).
struct Candidate {
  float start_logit = 0;
  float end_logit = 0;
  uint32_t begin = 0;
  uint32_t end = 0;
  float score() const { return start_logit + end_logit; }
};

// A window's contribution to its question: at most n_best candidates, best first, and the logits of
// [CLS]. Its other logits are not needed any more.
struct WindowAnswers {
  std::vector<Candidate> candidates;
  float null_start = 0;
  float null_end = 0;
};

// logits (length, 2): start and end logits of the window's tokens. The tokens of the context are
// [context_begin, context_begin + context_length); token_begins and token_ends are their byte
// offsets in the context.
WindowAnswers reduce_window(const float* logits, int64_t length, int64_t context_begin,
                            int64_t context_length, const uint32_t* token_begins,
                            const uint32_t* token_ends, const AnswerOptions& options);

struct RankedAnswer {
  std::string_view text;  // part of the context, or a literal
  float start_logit = 0;
  float end_logit = 0;
  float probability = 0;
};

struct QuestionAnswer {
  std::string_view text;
  std::vector<RankedAnswer> n_best;  // never empty
  float null_odds = 0;               // version 2: null score - best score
};

// `windows`: the windows of one question, in order.
QuestionAnswer answer_question(std::string_view context, const WindowAnswers* windows,
                               int64_t count, const AnswerOptions& options);

}  // namespace finetune

// Converts questions to overlapping windows, as Hugging Face's run_qa prepares them.
// A window is [CLS] question [SEP] context [SEP], the context cut into windows that overlap by
// doc_stride tokens, and the answer's first and last token as positions in the window. One
// deliberate difference: the start never passes the last token of the context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/squad.h"
#include "tasks/task.h"
#include "tokenizer/tokenizer.h"

namespace finetune {

struct WindowOptions {
  int64_t max_length = 384;  // of a window, special tokens included; at least kMinimumWindow
  int64_t doc_stride = 128;  // tokens that neighbouring windows share
};
constexpr int64_t kMinimumWindow = 16;

// Questions [begin, end) of a SquadData as windows. Question q of these (counted from `begin`) has
// the windows [first_window[q], first_window[q+1]), at least one.
struct QaWindows {
  int64_t begin = 0;
  int64_t end = 0;

  SampleSet set;                      // the windows; second[w] is the first context token
  std::vector<uint32_t> question;     // (windows) index into SquadData::questions
  std::vector<uint32_t> first_token;  // (windows) index in the context of its first token
  std::vector<int64_t> first_window;  // (questions + 1)
  std::vector<int32_t> starts;        // (windows) positions of the question's target answer; (0, 0)
  std::vector<int32_t> ends;          //   if there is none or it is not wholly inside, kUnknown
                                      //   if the question has answers, but none with a place

  // Contexts, each tokenized once. Context c (an index into SquadData::contexts) has the tokens
  // [context_tokens[slot[c]], context_tokens[slot[c]+1]). Offsets are bytes of the context.
  std::vector<uint32_t> slot;  // (contexts of SquadData) unused ones are kNoSlot
  std::vector<int64_t> context_tokens{0};
  std::vector<uint32_t> token_begins;  // (context tokens)
  std::vector<uint32_t> token_ends;

  int64_t split_questions = 0;  // questions with more than one window
  int64_t reduced_strides = 0;  // long questions with less overlap
  static constexpr uint32_t kNoSlot = UINT32_MAX;
  static constexpr int32_t kUnknown = -1;

  int64_t windows() const { return set.samples.size(); }
  // Frees the members that only answers need.
  void drop_offsets() {
    token_begins = {};
    token_ends = {};
  }
  // The number of context tokens in window w, and the first one's index in token_begins/token_ends.
  int64_t context_length(int64_t w) const {
    return set.samples.length(w) - set.samples.second[size_t(w)] - 1;
  }
  int64_t token_index(const SquadData& data, int64_t w) const {
    uint32_t context = data.questions[question[size_t(w)]].context;
    return context_tokens[slot[context]] + first_token[size_t(w)];
  }
};

// A window must hold its question and a part of the context. Where doc_stride does not fit into the
// room that the question leaves for the context, Hugging Face stops; here neighbours overlap by
// half of this room. A question that leaves less than a quarter of the window is cut at its end.
// Both cases are counted: reduced_strides, set.truncated.
QaWindows make_windows(const SquadData& data, int64_t begin, int64_t end,
                       const Tokenizer& tokenizer, const WindowOptions& options);

}  // namespace finetune

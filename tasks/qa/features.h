// Questions to overlapping windows, as Hugging Face's run_qa prepares them.
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

// Questions [begin, end) of a SquadData as windows. Question q of them (counted from `begin`) owns
// windows [first_window[q], first_window[q+1]), at least one.
struct QaWindows {
  int64_t begin = 0;
  int64_t end = 0;

  SampleSet set;                      // the windows; second[w] is the first context token
  std::vector<uint32_t> question;     // (windows) index into SquadData::questions
  std::vector<uint32_t> first_token;  // (windows) number of its first token in the context
  std::vector<int64_t> first_window;  // (questions + 1)
  std::vector<int32_t> starts;        // (windows) positions of the question's target answer; (0, 0)
  std::vector<int32_t> ends;          //   if there is none or it is not wholly inside, kUnknown
                                      //   if the question has answers, but none with a place

  // Contexts, each tokenized once: context c (an index into SquadData::contexts) owns tokens
  // [context_tokens[slot[c]], context_tokens[slot[c]+1]); offsets are bytes of the context.
  std::vector<uint32_t> slot;  // (contexts of SquadData) unused ones are kNoSlot
  std::vector<int64_t> context_tokens{0};
  std::vector<uint32_t> token_begins;  // (context tokens)
  std::vector<uint32_t> token_ends;

  int64_t split_questions = 0;  // contexts that needed more than one window
  int64_t reduced_strides = 0;  // long questions whose windows overlap by less
  static constexpr uint32_t kNoSlot = UINT32_MAX;
  static constexpr int32_t kUnknown = -1;

  int64_t windows() const { return set.samples.size(); }
  // Frees the members that only answers need, not training.
  void drop_offsets() {
    token_begins = {};
    token_ends = {};
  }
  // Tokens of the context in window w, and the number of the first one in token_begins/token_ends.
  int64_t context_length(int64_t w) const {
    return set.samples.length(w) - set.samples.second[size_t(w)] - 1;
  }
  int64_t token_index(const SquadData& data, int64_t w) const {
    uint32_t context = data.questions[question[size_t(w)]].context;
    return context_tokens[slot[context]] + first_token[size_t(w)];
  }
};

// A window must hold its question and a part of the context. Where Hugging Face stops, because
// doc_stride does not fit into what the question leaves for the context, neighbours overlap by half
// of what it leaves; a question that leaves less than a quarter of the window is cut at its end.
// Both are counted: reduced_strides, set.truncated.
QaWindows make_windows(const SquadData& data, int64_t begin, int64_t end,
                       const Tokenizer& tokenizer, const WindowOptions& options);

}  // namespace finetune

// Tokenizes contexts and questions, and cuts them into overlapping windows.
#include "tasks/qa/features.h"

#include <algorithm>

#include "core/error.h"
#include "core/threads/parallel.h"
#include "tasks/scores/python_text.h"
#include "tokenizer/encoding.h"

namespace finetune {
namespace {

constexpr int64_t kContextsPerTask = 16;
constexpr int64_t kQuestionsPerTask = 64;

// Token ids of the contexts of a QaWindows; only needed while windows are made.
using ContextIds = std::vector<int32_t>;

void append(const TokenBuffer& from, QaWindows& out, ContextIds& ids) {
  ids.insert(ids.end(), from.ids.begin(), from.ids.end());
  out.token_begins.insert(out.token_begins.end(), from.begins.begin(), from.begins.end());
  out.token_ends.insert(out.token_ends.end(), from.ends.begin(), from.ends.end());
}

// Tokenizes each context that a question refers to, once.
ContextIds tokenize_contexts(const SquadData& data, const Tokenizer& tokenizer, QaWindows& out) {
  out.slot.assign(data.contexts.size(), QaWindows::kNoSlot);
  std::vector<uint32_t> used;
  for (int64_t q = out.begin; q < out.end; ++q) {
    uint32_t context = data.questions[size_t(q)].context;
    if (out.slot[context] != QaWindows::kNoSlot) continue;
    out.slot[context] = uint32_t(used.size());
    used.push_back(context);
  }
  const int64_t count = int64_t(used.size());
  const int64_t tasks = (count + kContextsPerTask - 1) / kContextsPerTask;
  std::vector<TokenBuffer> buffers{size_t(tasks)};
  std::vector<int64_t> lengths(used.size());
  parallel_for(tasks, [&](int64_t task) {
    int64_t last = std::min(count, (task + 1) * kContextsPerTask);
    for (int64_t c = task * kContextsPerTask; c < last; ++c) {
      size_t before = buffers[size_t(task)].size();
      tokenizer.encode(data.contexts[used[size_t(c)]], buffers[size_t(task)]);
      lengths[size_t(c)] = int64_t(buffers[size_t(task)].size() - before);
    }
  });
  ContextIds ids;
  for (TokenBuffer& buffer : buffers) {
    append(buffer, out, ids);
    buffer = {};
  }
  for (int64_t length : lengths) out.context_tokens.push_back(out.context_tokens.back() + length);
  return ids;
}

// How a question and its context divide a window.
struct Split {
  int64_t question_length = 0;
  std::vector<TokenRange> ranges;  // of the context's tokens
  bool cut = false;
  bool reduced = false;
};

// `budget`: a window's tokens without special tokens.
Split split(int64_t question_length, int64_t context_length, int64_t budget, int64_t doc_stride) {
  Split out;
  const int64_t least = std::min({context_length, budget / 4, std::min(doc_stride, budget) + 1});
  out.question_length = std::min(question_length, budget - least);
  out.cut = out.question_length < question_length;
  const int64_t window = budget - out.question_length;
  int64_t overlap = doc_stride;
  if (overlap >= window) {
    out.reduced = context_length > window;
    overlap = window / 2;
  }
  if (window == 0) {
    out.ranges = {TokenRange{}};  // the question fills the window
  } else {
    out.ranges = windows(context_length, window, overlap);
  }
  return out;
}

// Positions of the answer [begin, end) (bytes) among the context's tokens [first, last], relative
// to `first`; {-1, -1} if it is not completely inside.
struct Positions {
  int64_t start = -1;
  int64_t end = -1;
};
Positions find_answer(const QaWindows& windows, int64_t first, int64_t count, int64_t begin,
                      int64_t end) {
  const uint32_t* begins = windows.token_begins.data() + first;
  const uint32_t* ends = windows.token_ends.data() + first;
  if (count == 0 || begins[0] > begin || ends[count - 1] < end) return {};
  int64_t start_token = 0;
  while (start_token + 1 < count && begins[start_token + 1] <= begin) ++start_token;
  int64_t end_token = count - 1;
  while (end_token > 0 && ends[end_token - 1] >= end) --end_token;
  return {start_token, end_token};
}

// The windows of some consecutive questions.
struct Part {
  TokenBuffer tokens;               // of the questions
  std::vector<int64_t> token_ends;  // (questions) cumulative
  std::vector<Split> splits;        // (questions)
  int64_t windows = 0;
  int64_t ids = 0;
};

void write_windows(const SquadData& data, const SpecialTokens& special,
                   const ContextIds& context_ids, const Part& part, int64_t first_question,
                   int64_t window, int64_t id, QaWindows& out) {
  std::vector<int32_t> buffer;
  for (size_t i = 0; i < part.splits.size(); ++i) {
    const int64_t q = first_question + int64_t(i);
    const SquadQuestion& question = data.questions[size_t(q)];
    const SquadAnswer* answer = question.target_answer();
    const bool is_unknown = question.found == TargetFound::nowhere;
    const int64_t context = out.context_tokens[out.slot[question.context]];
    const int32_t* question_ids = part.tokens.ids.data() + (i ? part.token_ends[i - 1] : 0);
    out.first_window[size_t(q - out.begin)] = window;
    for (TokenRange range : part.splits[i].ranges) {
      const int64_t count = range.end - range.begin;
      buffer.clear();
      uint32_t second = append_pair(special, question_ids, part.splits[i].question_length,
                                    context_ids.data() + context + range.begin, count, buffer);
      std::copy(buffer.begin(), buffer.end(), out.set.samples.ids.begin() + id);
      id += int64_t(buffer.size());
      Positions positions;
      if (answer) {
        positions =
            find_answer(out, context + range.begin, count, answer->start_byte, answer->end_byte);
      }
      const size_t w = size_t(window++);
      out.set.samples.offsets[w + 1] = id;
      out.set.samples.second[w] = second;
      out.question[w] = uint32_t(q);
      out.first_token[w] = uint32_t(range.begin);
      const int32_t elsewhere = is_unknown ? QaWindows::kUnknown : 0;
      out.starts[w] = positions.start < 0 ? elsewhere : int32_t(second + positions.start);
      out.ends[w] = positions.start < 0 ? elsewhere : int32_t(second + positions.end);
    }
  }
}

}  // namespace

QaWindows make_windows(const SquadData& data, int64_t begin, int64_t end,
                       const Tokenizer& tokenizer, const WindowOptions& options) {
  FINETUNE_CHECK(begin >= 0 && begin <= end && end <= int64_t(data.questions.size()));
  FINETUNE_CHECK(options.max_length >= kMinimumWindow && options.doc_stride >= 0);
  QaWindows out;
  out.begin = begin;
  out.end = end;
  out.set.examples = end - begin;
  const ContextIds context_ids = tokenize_contexts(data, tokenizer, out);

  const int64_t around = tokenizer.special().around_pair();
  const int64_t count = end - begin;
  const int64_t tasks = (count + kQuestionsPerTask - 1) / kQuestionsPerTask;
  std::vector<Part> parts{size_t(tasks)};
  parallel_for(tasks, [&](int64_t task) {
    Part& part = parts[size_t(task)];
    const int64_t last = std::min(count, (task + 1) * kQuestionsPerTask);
    for (int64_t i = task * kQuestionsPerTask; i < last; ++i) {
      const SquadQuestion& question = data.questions[size_t(begin + i)];
      const size_t before = part.tokens.size();
      tokenizer.encode(python_lstrip(question.question), part.tokens);
      part.token_ends.push_back(int64_t(part.tokens.size()));
      const uint32_t slot = out.slot[question.context];
      const int64_t context_length = out.context_tokens[slot + 1] - out.context_tokens[slot];
      Split parted = split(int64_t(part.tokens.size() - before), context_length,
                           options.max_length - around, options.doc_stride);
      part.windows += int64_t(parted.ranges.size());
      for (TokenRange range : parted.ranges) {
        part.ids += parted.question_length + (range.end - range.begin) + around;
      }
      part.splits.push_back(std::move(parted));
    }
  });

  // Finds where each part begins, so that all parts can be written in parallel.
  std::vector<int64_t> first_window(size_t(tasks) + 1), first_id(size_t(tasks) + 1);
  for (size_t task = 0; task < size_t(tasks); ++task) {
    first_window[task + 1] = first_window[task] + parts[task].windows;
    first_id[task + 1] = first_id[task] + parts[task].ids;
    for (const Split& parted : parts[task].splits) {
      out.split_questions += parted.ranges.size() > 1;
      out.set.truncated += parted.cut;
      out.reduced_strides += parted.reduced;
    }
  }
  const size_t windows = size_t(first_window.back());
  out.set.samples.ids.resize(size_t(first_id.back()));
  out.set.samples.offsets.resize(windows + 1);
  out.set.samples.second.resize(windows);
  out.question.resize(windows);
  out.first_token.resize(windows);
  out.starts.resize(windows);
  out.ends.resize(windows);
  out.first_window.resize(size_t(count) + 1);
  out.first_window.back() = int64_t(windows);
  parallel_for(tasks, [&](int64_t task) {
    const size_t t = size_t(task);
    write_windows(data, tokenizer.special(), context_ids, parts[t],
                  begin + task * kQuestionsPerTask, first_window[t], first_id[t], out);
    parts[t] = {};
  });
  return out;
}

}  // namespace finetune

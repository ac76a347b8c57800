// Reads SQuAD v1.1 and v2.0 (Rajpurkar et al., 2016, 2018), nested as published or flat. Flat rows
// are {"id","question","context","answers":{"text":[],"answer_start":[]}} under "data", as an array
// or as JSON Lines. A table has the columns id, question, context, and answers or answer_text with
// answer_start. Offsets are code points in files and bytes here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/input_file.h"

namespace finetune {

struct SquadAnswer {
  std::string text;
  int64_t start_byte = -1;  // in the context; -1: unknown
  int64_t end_byte = -1;
};

// How the answer used for training was found.
enum class TargetFound {
  none,          // the question has no answer
  first_answer,  // at its answer_start
  later_answer,  // at its answer_start; earlier answers were not
  only_place,    // no answer is at its answer_start, but this one's text occurs exactly once
  nowhere,       // there are answers, but none was found in the context
};

struct SquadQuestion {
  std::string id;  // "q-N" if the file has none, N its number in the data from 1
  std::string question;
  uint32_t context = 0;              // index into SquadData::contexts
  bool is_impossible = false;        // "answers" is empty; if that key is absent: the file's flag
  bool contradicts_flag = false;     // the file's flag contradicts the answers
  std::vector<SquadAnswer> answers;  // may be empty; never a blank text
  TargetFound found = TargetFound::none;
  int32_t target = -1;  // the answer used for training, or -1

  const SquadAnswer* target_answer() const {
    return target < 0 ? nullptr : &answers[size_t(target)];
  }
};

struct SquadData {
  std::vector<std::string> contexts;
  std::vector<SquadQuestion> questions;
  bool has_unanswerable = false;  // use the rules of version 2
  int64_t left_out = 0;  // questions unusable for training: no answer was found in its context
};

// Reads the questions of all files; `limit` > 0 keeps the first `limit`. Error(data) names the file
// and the question id or byte offset for malformed JSON, missing keys, repeated ids or a file
// without questions. With `need_answers`, a question without "answers" is an error too.
SquadData read_squad(const std::vector<InputFile>& files, int64_t limit, bool need_answers);
// Returns true if the file begins like SQuAD: an object with an array "data" of questions, rows
// with "context" and "question", or a table with these columns and answers. False for a pipe.
// Error(data) if the file is missing.
bool looks_like_squad(const InputFile& file);

}  // namespace finetune

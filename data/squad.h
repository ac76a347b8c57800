// A reader of SQuAD v1.1 and v2.0 (Rajpurkar et al., 2016, 2018), nested as published or flat.
// Flat rows are {"id","question","context","answers":{"text":[],"answer_start":[]}} under "data",
// as an array or as JSON Lines. Offsets are code points in the file and bytes here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/input_file.h"

namespace finetune {

struct SquadAnswer {
  std::string text;
  int64_t start_byte = -1;  // of the context; -1 where the text is not at answer_start
};

struct SquadQuestion {
  std::string id;
  std::string question;
  uint32_t context = 0;        // index into SquadData::contexts
  bool is_impossible = false;  // "answers" is empty; where that key is absent: the file's flag
  std::vector<SquadAnswer> answers;  // may be empty
};

struct SquadData {
  std::vector<std::string> contexts;
  std::vector<SquadQuestion> questions;
  bool has_unanswerable = false;  // version 2 rules apply
  int64_t misplaced_answers = 0;  // first answers whose text is not at answer_start
};

// Error(data) with file and question id (or byte offset) for malformed JSON, missing keys, repeated
// ids or no question at all. `limit` > 0 keeps the first so many questions. With `need_answers` a
// question without "answers" and more than half misplaced first answers are errors.
SquadData read_squad(const std::vector<InputFile>& files, int64_t limit, bool need_answers);
// True if the file begins like a SQuAD file: an object with an array "data", or a row or an array
// of rows with "context" and "question". False for a pipe. Error(data) if the file is missing.
bool looks_like_squad(const InputFile& file);

}  // namespace finetune

// The searches of `finetune check`, each for one kind of fault.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/text/counted.h"
#include "tasks/classification/check/checked_data.h"
#include "tasks/data_check.h"
#include "tasks/texts/encoded_rows.h"
#include "tokenizer/tokenizer.h"

namespace finetune {

// Decides which texts are cut.
struct CheckedModel {
  const Tokenizer& tokenizer;
  int64_t max_length = 0;  // from checked_max_length()
  int64_t positions = 0;   // the largest max_length
};

// Each function adds its findings, if there are any.
void find_faulty_rows(const CheckedData& data, Findings& out);
void find_label_faults(const CheckedData& data, Findings& out);    // one class, unknown, too many
void find_rare_labels(const CheckedData& data, Findings& out);     // classes with too few rows
void find_similar_labels(const CheckedData& data, Findings& out);  // "Food" and "food "
void find_label_shift(const CheckedData& data, Findings& out);     // between the files
void find_equal_texts(const CheckedData& data, Findings& out);     // in one file
void find_overlap(const CheckedData& data, Findings& out);         // of the two files
void find_telling_columns(const CheckedData& data, Findings& out);
void find_labels_in_texts(const CheckedData& data, Findings& out);
// Texts that training would cut, depending on options.long_texts.
void find_cut_texts(const CheckedData& data, const CheckedModel& model, Findings& out);

// "12.5 %".
std::string percent(int64_t count, int64_t of);

}  // namespace finetune

// What is worth knowing of rows before a model is trained on them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tasks/classification/check/checked_data.h"
#include "tokenizer/tokenizer.h"

namespace finetune {

// Most serious first: an error stops training, a warning spoils or flatters its result.
enum class FindingLevel { error, warning, note };

struct Finding {
  FindingLevel level = FindingLevel::note;
  std::string kind;   // "overlap", for scripts
  std::string text;   // one line: the figure and what to do
  int64_t count = 0;  // rows, labels or columns that it is about
};
using Findings = std::vector<Finding>;

// What of a model says which texts are cut.
struct CheckedModel {
  const Tokenizer& tokenizer;
  int64_t max_length = 0;  // as checked_max_length() has it
  int64_t positions = 0;   // what it can be
};

// Each adds what it finds, or nothing.
void find_faulty_rows(const CheckedData& data, Findings& out);
void find_label_faults(const CheckedData& data, Findings& out);    // one class, unknown, too many
void find_rare_labels(const CheckedData& data, Findings& out);     // classes with too few rows
void find_similar_labels(const CheckedData& data, Findings& out);  // "Food" and "food "
void find_label_shift(const CheckedData& data, Findings& out);     // between the files
void find_equal_texts(const CheckedData& data, Findings& out);     // in one file
void find_overlap(const CheckedData& data, Findings& out);         // of the files
void find_telling_columns(const CheckedData& data, Findings& out);
void find_labels_in_texts(const CheckedData& data, Findings& out);
// Texts that training would cut, as options.long_texts says.
void find_cut_texts(const CheckedData& data, const CheckedModel& model, Findings& out);

// "3 rows", "1 row"; "12.5 %".
std::string counted(int64_t count, const char* one, const char* many);
std::string percent(int64_t count, int64_t of);

}  // namespace finetune

// Which columns of a file hold what, and their rows as tokenized samples.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/text_sum.h"
#include "model/config.h"
#include "tasks/task.h"
#include "tokenizer/tokenizer.h"

namespace finetune {

// Values of one row, one for each column of its file.
using RowValues = std::span<const std::string_view>;

struct TextColumns {
  std::vector<size_t> text;    // joined by one space
  std::optional<size_t> pair;  // second text
};

// Index of the column `name`, or Error(data) that names the file, the columns there are and the
// option that chooses another.
size_t find_column(const std::vector<std::string>& columns, std::string_view name,
                   const std::filesystem::path& file, std::string_view option);

// options.rows with the names of the columns that the task reads: text, second text, slices and
// groups, and unless `without_label` the label. A text column that nobody names is "text".
RowOptions row_options_of(const TaskOptions& options, bool without_label = false);

// The columns that options.text_columns and text_pair_column name. Without --text-column: "text",
// else the only column besides label and pair. Error(data) if there is none, or several;
// Error(usage) for a column that is text and label at once.
TextColumns find_text_columns(const std::vector<std::string>& columns,
                              const std::filesystem::path& file, const TaskOptions& options);

// The joined text of a row; `buffer` holds it where several columns are joined.
std::string_view joined_text(RowValues row, const TextColumns& columns, std::string& buffer);

// Equal for rows with the same text in each of these columns, apart from white space around it.
TextSum text_sum_of(RowValues row, const TextColumns& columns);

// The name of the first text or pair column whose text is empty or white space, or nothing. Of
// several joined columns some may be empty, but not all.
std::optional<std::string> empty_text_column(RowValues row, const TextColumns& columns,
                                             const std::vector<std::string>& names);

// Tokens that a text needs beside the special ones.
int64_t least_max_length(bool pairs);

// --max-length or, if 0, the task's default (128) cut to the model's positions. Error(usage) if it
// is beyond the positions or leaves no room for text, Error(model) for pairs with a model of one
// token type.
int64_t checked_max_length(int64_t asked, const EncoderConfig& config, bool pairs);

// [CLS] text [SEP] or [CLS] text [SEP] pair [SEP] of at most max_length tokens: of each row one, or
// windows (text_windows.h). In the order of the rows, on all threads; the same for any number of
// them.
SampleSet encode_rows(const Tokenizer& tokenizer, std::span<const RowValues> rows,
                      const TextColumns& columns, int64_t max_length,
                      const LongTexts& long_texts = {});

}  // namespace finetune

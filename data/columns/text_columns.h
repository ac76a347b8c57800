// Finds the columns of a file by name, and reads the texts of its rows.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/text_sum.h"

namespace finetune {

// Values of one row, one for each column of its file.
using RowValues = std::span<const std::string_view>;

// The names that the user gave.
struct ColumnNames {
  std::vector<std::string> text;  // --text-column; empty: "text", or the only candidate
  std::string pair;               // --text-pair-column, or empty
  std::string label = "label";
  std::vector<std::string> numbers, categories;  // beside the text

  // The columns to read, except the label. Without --text-column the text column is "text".
  std::vector<std::string> of_texts() const;
};

// Indices of columns.
struct TextColumns {
  std::vector<size_t> text;    // joined by one space
  std::optional<size_t> pair;  // second text
  std::vector<size_t> numbers = {}, categories = {};

  bool is_beside(size_t column) const;  // a number or a category
};

// Returns the index of the column `name`. Error(data) names the file, its columns and the option
// that chooses another one.
size_t find_column(const std::vector<std::string>& columns, std::string_view name,
                   const std::filesystem::path& file, std::string_view option);

// Returns the columns of the names. Without names.text: "text", else the only column besides label
// and pair. Error(data) if there is none, or several; Error(usage) for a column that is text and
// label at once.
TextColumns find_text_columns(const std::vector<std::string>& columns,
                              const std::filesystem::path& file, const ColumnNames& names);

// Returns the joined text of a row; `buffer` holds it if several columns are joined.
std::string_view joined_text(RowValues row, const TextColumns& columns, std::string& buffer);

// Equal for rows with the same text in each of these columns, ignoring white space around it.
TextSum text_sum_of(RowValues row, const TextColumns& columns);

// Returns the name of the first text or pair column whose text is empty or white space, or nothing.
// If several columns are joined, some of them may be empty, but not all.
std::optional<std::string> empty_text_column(RowValues row, const TextColumns& columns,
                                             const std::vector<std::string>& names);

}  // namespace finetune

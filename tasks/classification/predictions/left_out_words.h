// Rows with one of their words left out each, to see what the word does to the label.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/columns/text_columns.h"

namespace finetune {

class LeftOutWords {
 public:
  static constexpr size_t kMostWords = 64;  // of a row; later ones are never left out

  // Words are separated by white space; those of a second text stay. `rows` must outlive the uses.
  void set(std::span<const RowValues> rows, const TextColumns& columns);
  // Each row, followed by the row without its first word, without its second, ...
  std::span<const RowValues> rows() const { return rows_; }
  // The words of each row, in their order.
  const std::vector<std::vector<std::string>>& words() const { return words_; }

 private:
  void leave_out(RowValues row, size_t column, std::string_view word);

  std::vector<RowValues> rows_;
  std::vector<std::vector<std::string>> words_;
  std::deque<std::vector<std::string_view>> values_;  // of the changed rows
  std::deque<std::string> texts_;
};

}  // namespace finetune

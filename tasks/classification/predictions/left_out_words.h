// Copies rows without one of their words each, to see the word's effect on the label.
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
  // Of the text and of a second text, each; later words are never left out.
  static constexpr size_t kMostWords = 64;

  // Unicode's white space separates words, and a CJK character is a word, as in BERT's tokenizer.
  // A second text's words follow the text's. `rows` must outlive all uses.
  void set(std::span<const RowValues> rows, const TextColumns& columns);
  // Each row, followed by the row without its first word, without its second word, and so on.
  std::span<const RowValues> rows() const { return rows_; }
  // The words of each row, in order.
  const std::vector<std::vector<std::string>>& words() const { return words_; }

 private:
  struct Word {
    size_t begin, end;  // byte offsets in the text
  };

  static std::vector<Word> words_of(std::string_view text);
  // The text as a person would write it without words[i].
  static std::string text_without(std::string_view text, std::span<const Word> words, size_t i);
  // Adds copies of the row without a word of the column, until it has `most` words.
  void add_words_of(RowValues row, size_t column, size_t most);
  void add(RowValues row, size_t column, std::string text);

  std::vector<RowValues> rows_;
  std::vector<std::vector<std::string>> words_;
  std::deque<std::vector<std::string_view>> values_;  // of the changed rows
  std::deque<std::string> texts_;
};

}  // namespace finetune

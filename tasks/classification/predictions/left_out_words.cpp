// Copies rows, with the text before and behind a word joined.
#include "tasks/classification/predictions/left_out_words.h"

namespace finetune {
namespace {

constexpr std::string_view kSpaces = " \t\r\n\f\v";

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (size_t begin = text.find_first_not_of(kSpaces); begin != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kSpaces, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(kSpaces, end);
  }
  return words;
}

}  // namespace

void LeftOutWords::leave_out(RowValues row, size_t column, std::string_view word) {
  const std::string_view text = row[column];
  const auto before = size_t(word.data() - text.data());
  size_t behind = before + word.size();
  while (behind < text.size() && kSpaces.find(text[behind]) != std::string_view::npos) ++behind;
  texts_.push_back(std::string(text.substr(0, before)).append(text.substr(behind)));
  std::vector<std::string_view>& values = values_.emplace_back(row.begin(), row.end());
  values[column] = texts_.back();
  rows_.emplace_back(values);
}

void LeftOutWords::set(std::span<const RowValues> rows, const TextColumns& columns) {
  rows_.clear();
  words_.clear();
  values_.clear();
  texts_.clear();
  for (const RowValues row : rows) {
    rows_.push_back(row);
    std::vector<std::string>& words = words_.emplace_back();
    for (const size_t column : columns.text) {
      for (const std::string_view word : words_of(row[column])) {
        if (words.size() == kMostWords) break;
        words.emplace_back(word);
        leave_out(row, column, word);
      }
    }
  }
}

}  // namespace finetune

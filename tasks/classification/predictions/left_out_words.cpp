// Finds the words of a text, and copies rows without one of them.
#include "tasks/classification/predictions/left_out_words.h"

#include "core/text/utf8.h"
#include "tokenizer/unicode/unicode_tables.h"

namespace finetune {

std::vector<LeftOutWords::Word> LeftOutWords::words_of(std::string_view text) {
  std::vector<Word> words;
  bool is_open = false;  // whether the next character continues the last word
  for (size_t at = 0; at < text.size();) {
    const auto [c, length] = utf8::decode(text, at);
    const bool is_space = unicode::has(c, unicode::kSpace);
    const bool is_whole = unicode::has(c, unicode::kCjk);
    if (!is_space && (is_whole || !is_open)) words.push_back({at, at});
    at += length;
    if (!is_space) words.back().end = at;
    is_open = !is_space && !is_whole;
  }
  return words;
}

// Removes neighbouring blanks where they would be doubled, or begin or end the text.
std::string LeftOutWords::text_without(std::string_view text, std::span<const Word> words,
                                       size_t i) {
  const bool is_first = i == 0, is_last = i + 1 == words.size();
  size_t begin = words[i].begin, end = words[i].end;
  const size_t before = is_first ? 0 : words[i - 1].end;
  const size_t behind = is_last ? text.size() : words[i + 1].begin;
  if (is_first || (!is_last && before < begin)) end = behind;
  if (is_last) begin = before;
  return std::string(text.substr(0, begin)).append(text.substr(end));
}

void LeftOutWords::add(RowValues row, size_t column, std::string text) {
  texts_.push_back(std::move(text));
  std::vector<std::string_view>& values = values_.emplace_back(row.begin(), row.end());
  values[column] = texts_.back();
  rows_.emplace_back(values);
}

void LeftOutWords::add_words_of(RowValues row, size_t column, size_t most) {
  const std::string_view text = row[column];
  const std::vector<Word> found = words_of(text);
  std::vector<std::string>& words = words_.back();
  for (size_t i = 0; i < found.size() && words.size() < most; ++i) {
    words.emplace_back(text.substr(found[i].begin, found[i].end - found[i].begin));
    add(row, column, text_without(text, found, i));
  }
}

void LeftOutWords::set(std::span<const RowValues> rows, const TextColumns& columns) {
  rows_.clear();
  words_.clear();
  values_.clear();
  texts_.clear();
  for (const RowValues row : rows) {
    rows_.push_back(row);
    words_.emplace_back();
    for (const size_t column : columns.text) add_words_of(row, column, kMostWords);
    if (columns.pair) add_words_of(row, *columns.pair, words_.back().size() + kMostWords);
  }
}

}  // namespace finetune

// Visits a text's n-grams as NgramCutter does, and keeps the characters instead of hashes.
#include "tasks/classification/predictions/named_ngrams.h"

#include <algorithm>

#include "core/error.h"
#include "core/text/utf8.h"
#include "tasks/classification/ngrams/ngram_cutter.h"
#include "tokenizer/unicode/unicode_tables.h"

namespace finetune {
namespace {

std::vector<std::string> lower_characters(std::string_view text, std::vector<char32_t>& points) {
  std::vector<std::string> out;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    const utf8::Decoded decoded = utf8::decode(at, end);
    points.push_back(unicode::lower(decoded.c));
    utf8::append(points.back(), out.emplace_back());
    at += decoded.length;
  }
  return out;
}

std::vector<std::string> word_names(const std::vector<std::string>& characters,
                                    const std::vector<char32_t>& points) {
  std::vector<std::string> names;
  for (size_t begin = 0; begin < points.size();) {
    std::string name;
    size_t end = begin;
    for (; end < points.size() && unicode::has(points[end], unicode::kWord); ++end) {
      name += characters[end];
    }
    if (end - begin >= 2) names.push_back(std::move(name));
    begin = end + 1;
  }
  const size_t words = names.size();
  for (size_t i = 1; i < words; ++i) names.push_back(names[i - 1] + " " + names[i]);
  return names;
}

std::vector<std::string> character_names(const std::vector<std::string>& characters,
                                         const std::vector<char32_t>& points) {
  std::vector<std::string> names;
  const auto is_space = [&](size_t at) { return unicode::has(points[at], unicode::kSpace); };
  for (size_t begin = 0; begin < points.size();) {
    size_t end = begin;
    while (end < points.size() && !is_space(end)) ++end;
    for (size_t first = begin; end > begin && first <= end; ++first) {
      std::string name = "'";
      const size_t last = std::min(first + kLongestCharacterNgram, end + 2);
      for (size_t at = first; at < last; ++at) {
        name += at == begin || at == end + 1 ? " " : characters[at - 1];
        if (at > first) names.push_back(name + "'");
      }
    }
    begin = end + 1;
  }
  return names;
}

}  // namespace

std::vector<std::pair<uint64_t, std::string>> named_ngrams(std::string_view text) {
  text = text.substr(0, kMostNgramBytes);
  Ngrams ngrams;
  NgramCutter().cut(text, ngrams);
  std::vector<char32_t> points;
  const std::vector<std::string> characters = lower_characters(text, points);
  std::vector<std::string> names = word_names(characters, points);
  FINETUNE_CHECK(names.size() == ngrams.words.size());
  std::vector<uint64_t> hashes = std::move(ngrams.words);
  for (std::string& name : character_names(characters, points)) names.push_back(std::move(name));
  hashes.insert(hashes.end(), ngrams.characters.begin(), ngrams.characters.end());
  FINETUNE_CHECK(names.size() == hashes.size());
  std::vector<std::pair<uint64_t, std::string>> out;
  for (size_t i = 0; i < names.size(); ++i) out.emplace_back(hashes[i], std::move(names[i]));
  return out;
}

}  // namespace finetune

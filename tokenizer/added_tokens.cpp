// Finds added tokens in text, longest first, with their flags for spaces.
#include "tokenizer/added_tokens.h"

#include <algorithm>
#include <cstring>

#include "core/text/utf8.h"
#include "tokenizer/unicode/unicode_tables.h"

namespace finetune {

std::unordered_set<std::string_view> outside_model(const std::vector<AddedToken>& tokens) {
  std::unordered_set<std::string_view> contents;
  for (const AddedToken& token : tokens) {
    if (!token.of_model) contents.insert(token.content);
  }
  return contents;
}

AddedTokenMatcher::AddedTokenMatcher(std::vector<AddedToken> tokens,
                                     std::vector<std::string> patterns)
    : tokens_(std::move(tokens)), patterns_(std::move(patterns)) {
  std::vector<std::pair<std::string_view, int32_t>> keys;
  for (size_t i = 0; i < patterns_.size(); ++i) {
    if (!patterns_[i].empty()) keys.push_back({patterns_[i], int32_t(i)});
  }
  std::stable_sort(keys.begin(), keys.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  keys.erase(std::unique(keys.begin(), keys.end(),
                         [](const auto& a, const auto& b) { return a.first == b.first; }),
             keys.end());
  trie_.build(keys);
  for (const auto& key : keys) starts_[uint8_t(key.first[0])] = true;
  if (std::count(starts_, starts_ + 256, true) == 1) {
    only_start_ = int(std::find(starts_, starts_ + 256, true) - starts_);
  }
}

size_t AddedTokenMatcher::next_candidate(std::string_view text, size_t from) const {
  if (from >= text.size()) return text.size();
  if (only_start_ >= 0) {
    const void* at = std::memchr(text.data() + from, only_start_, text.size() - from);
    return at ? size_t(static_cast<const char*>(at) - text.data()) : text.size();
  }
  while (from < text.size() && !starts_[uint8_t(text[from])]) ++from;
  return from;
}

bool AddedTokenMatcher::next(std::string_view text, size_t& search, size_t done,
                             Match& match) const {
  if (trie_.empty()) return false;
  const char* end = text.data() + text.size();
  for (size_t at = next_candidate(text, search); at < text.size();
       at = next_candidate(text, search)) {
    PieceTrie::Match found = trie_.longest(text.data() + at, end);
    if (found.length == 0) {
      search = at + 1;
      continue;
    }
    const AddedToken& token = tokens_[size_t(found.value)];
    size_t begin = at;
    size_t stop = at + found.length;
    search = stop;
    if (token.single_word) {
      bool word_before =
          begin > 0 && unicode::has(utf8::decode_before(text, begin).c, unicode::kWord);
      bool word_behind =
          stop < text.size() && unicode::has(utf8::decode(text, stop).c, unicode::kWord);
      if (word_before || word_behind) continue;
    }
    while (token.lstrip && begin > done) {
      utf8::Decoded before = utf8::decode_before(text, begin);
      if (!unicode::has(before.c, unicode::kSpace)) break;
      begin -= before.length;
    }
    while (token.rstrip && stop < text.size()) {
      utf8::Decoded behind = utf8::decode(text, stop);
      if (!unicode::has(behind.c, unicode::kSpace)) break;
      stop += behind.length;
    }
    search = std::max(search, stop);
    match = {token.id, begin, stop};
    return true;
  }
  return false;
}

}  // namespace finetune

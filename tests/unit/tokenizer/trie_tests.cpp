// The piece trie, the word table, UTF-8 and the Unicode tables.
#include <map>

#include "core/numeric/philox.h"
#include "core/text/utf8.h"
#include "support.h"
#include "tokenizer/sentencepiece/piece_trie.h"
#include "tokenizer/unicode/unicode_tables.h"
#include "tokenizer/wordpiece/word_table.h"

namespace finetune {
namespace {

// Random words over few letters (many shared prefixes), including the smallest and largest byte.
std::vector<std::string> random_words(size_t count, uint64_t seed) {
  const std::string letters("ab\xFF\x01", 4);
  std::vector<std::string> out;
  for (uint32_t i = 0; i < count; ++i) {
    PhiloxBlock bits = philox({uint32_t(seed), 7}, {i, 0, 0, 0});
    std::string word;
    for (uint32_t k = 0; k <= bits[0] % 9; ++k) word += letters[(bits[1] >> 2 * k) & 3];
    out.push_back(word);
  }
  return out;
}

TEST_CASE("the trie's longest match is the longest key that is a prefix") {
  for (size_t count : {0, 1, 5, 50, 3000}) {
    std::map<std::string, int32_t> keys;
    for (const std::string& word : random_words(count, 1)) keys.emplace(word, int32_t(keys.size()));
    PieceTrie trie;
    trie.build({keys.begin(), keys.end()});
    CHECK(trie.empty() == keys.empty());
    for (const std::string& text : random_words(2000, 2)) {
      PieceTrie::Match match = trie.longest(text.data(), text.data() + text.size());
      uint32_t length = uint32_t(text.size());
      while (length > 0 && !keys.contains(text.substr(0, length))) --length;
      CHECK(match.length == length);
      if (length > 0) CHECK(match.value == keys[text.substr(0, length)]);
    }
  }
}

TEST_CASE("the word table finds what is in it and nothing else") {
  std::map<std::string, int32_t> keys;
  for (const std::string& word : random_words(3000, 3)) keys.emplace(word, int32_t(keys.size()));
  keys.emplace("sixteen_letters_", 777777);
  WordTable table(keys.size());
  for (const auto& [word, id] : keys) table.insert(word, id);
  for (const auto& [word, id] : keys) CHECK(table.find(WordTable::key(word)) == id);
  for (const std::string& word : random_words(2000, 4)) {
    auto it = keys.find(word);
    CHECK(table.find(WordTable::key(word)) == (it == keys.end() ? -1 : it->second));
  }
}

TEST_CASE("UTF-8: every scalar value there and back; maximal subparts") {
  std::string text;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    text.clear();
    utf8::append(c, text);
    utf8::Decoded d = utf8::decode(text, 0);
    if (d.c != c || d.length != text.size()) FAIL_CHECK(uint32_t(c));
    utf8::Decoded before = utf8::decode_before("x" + text, 1 + text.size());
    if (before.c != c || before.length != text.size()) FAIL_CHECK(uint32_t(c));
  }
  // Unicode 15, table 3-11: the parts of an ill-formed sequence.
  std::string ill("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64");
  std::u32string decoded;
  for (size_t at = 0; at < ill.size();) {
    utf8::Decoded d = utf8::decode(ill, at);
    decoded += d.c;
    at += d.length;
  }
  CHECK(decoded == U"a\uFFFD\uFFFD\uFFFDb\uFFFDc\uFFFD\uFFFDd");
  const std::string_view surrogate = "\xED\xA0\x80";
  CHECK(utf8::decode(surrogate, 0).c == U'\uFFFD');
  CHECK(utf8::decode(surrogate, 0).length == 1);
}

TEST_CASE("Unicode tables at places where Unicode versions differ") {
  using namespace unicode;
  CHECK(has(0x166D, kPunctuation));        // a symbol since Unicode 12
  CHECK_FALSE(has(0x2E43, kPunctuation));  // added in Unicode 9
  CHECK_FALSE(has(0x08E2, kControl));      // added in Unicode 9
  CHECK(has(0x00AD, kControl));
  CHECK(has(0x0085, kControl));
  CHECK_FALSE(has('\n', kControl));
  CHECK(has(0x2028, kSpace));
  CHECK(has(0x2B920, kCjk));
  CHECK_FALSE(has(0x2B820, kCjk));
  CHECK(lower(0x1E9E) == 0xDF);
  CHECK(lower(0x3A3) == 0x3C3);
  std::u32string parts;
  decompose(0xAC01, false, [&](char32_t c) { parts += c; });
  CHECK(parts == U"\u1100\u1161\u11A8");
  parts.clear();
  decompose(0xFB01, true, [&](char32_t c) { parts += c; });
  CHECK(parts == U"fi");
}

}  // namespace
}  // namespace finetune

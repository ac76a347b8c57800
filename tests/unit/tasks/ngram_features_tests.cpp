// N-grams and their weights, compared with scikit-learn's and by hand.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "ngram_golden.h"
#include "tasks/classification/ngrams/vectorizer.h"

using namespace finetune;

namespace {

Ngrams ngrams_of(std::string_view text) {
  NgramCutter cutter;
  Ngrams out;
  cutter.cut(text, out);
  return out;
}

std::vector<float> sorted_values(std::span<const Feature> features) {
  std::vector<float> values;
  for (const Feature& feature : features) values.push_back(feature.value);
  std::sort(values.begin(), values.end());
  return values;
}

}  // namespace

TEST_CASE("n-grams are words, pairs of words, and two to five characters of a word with blanks") {
  const Ngrams ngrams = ngrams_of("ab c de");
  CHECK(ngrams.words.size() == 3);               // ab, de, ab de: one letter is no word
  CHECK(ngrams.characters.size() == 6 + 3 + 6);  // of " ab ", " c " and " de "
  CHECK(ngrams_of("longer").characters.size() == 7 + 6 + 5 + 4);
  CHECK(ngrams_of("").words.empty());
  CHECK(ngrams_of(" \t ").characters.empty());
}

TEST_CASE("of a very long text the first MiB has n-grams") {
  std::string text;
  while (text.size() < kMostNgramBytes) text += "ab \xC3\xB6 ";  // 6 bytes: cut in a character
  const Ngrams whole = ngrams_of(text + "cd ef"),
               first = ngrams_of(text.substr(0, kMostNgramBytes));
  CHECK(whole.words == first.words);
  CHECK(whole.characters == first.characters);
}

TEST_CASE("n-grams do not tell upper from lower case, but words from characters") {
  CHECK(ngrams_of("STRASSE Ö").characters == ngrams_of("strasse ö").characters);
  CHECK(ngrams_of("ab").words != ngrams_of("ba").words);
  const Ngrams same = ngrams_of("ab ab");
  CHECK(same.words[0] == same.words[1]);
  CHECK(std::find(same.characters.begin(), same.characters.end(), same.words[0]) ==
        same.characters.end());
}

TEST_CASE("TF-IDF values are scikit-learn's") {
  NgramTable table;
  NgramCutter cutter;
  Ngrams ngrams;
  for (size_t i = 0; i < test::kGoldenTrained; ++i) {
    cutter.cut(test::kGoldenTexts[i].text, ngrams);
    table.add(ngrams);
  }
  table.number();
  CHECK(table.size() == test::kGoldenFeatures);
  Vectorizer vectorizer(table);
  for (const test::GoldenText& golden : test::kGoldenTexts) {
    CAPTURE(golden.text);
    const std::span<const Feature> features = vectorizer(golden.text);
    REQUIRE(features.size() == golden.words.size() + golden.characters.size());
    const std::vector<float> words = sorted_values(features.first(golden.words.size())),
                             characters = sorted_values(features.subspan(golden.words.size()));
    for (size_t i = 0; i < words.size(); ++i) CHECK(std::abs(words[i] - golden.words[i]) < 2e-6);
    for (size_t i = 0; i < characters.size(); ++i) {
      CHECK(std::abs(characters[i] - golden.characters[i]) < 2e-6);
    }
  }
}

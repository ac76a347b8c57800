// Explanations by hand, and n-grams that add up to the linear model's scores.
#include <doctest/doctest.h>

#include <algorithm>

#include "tasks/classification/ngrams/text_rows.h"
#include "tasks/classification/ngrams/training.h"
#include "tasks/classification/predictions/explanation.h"
#include "tasks/classification/predictions/left_out_words.h"
#include "tasks/classification/predictions/named_ngrams.h"

using namespace finetune;

TEST_CASE("each word of the text columns is left out once") {
  const std::vector<std::string_view> row{"7", " CDN  TIRE ", "hand\tsoap", "a pair"};
  const std::vector<std::string_view> empty{"8", "", "", ""};
  const std::vector<RowValues> rows{row, empty};
  LeftOutWords left_out;
  left_out.set(rows, {{1, 2}, 3});
  REQUIRE(left_out.words().size() == 2);
  CHECK(left_out.words()[0] ==
        std::vector<std::string>{"CDN", "TIRE", "hand", "soap", "a", "pair"});
  CHECK(left_out.words()[1].empty());
  REQUIRE(left_out.rows().size() == 8);
  CHECK(left_out.rows()[0][1] == " CDN  TIRE ");
  CHECK(left_out.rows()[1][1] == " TIRE ");
  CHECK(left_out.rows()[2][1] == " CDN ");
  CHECK(left_out.rows()[3][2] == "soap");
  CHECK(left_out.rows()[4][2] == "hand");
  CHECK(left_out.rows()[4][3] == "a pair");
  CHECK(left_out.rows()[5][2] == "hand\tsoap");
  CHECK(left_out.rows()[5][3] == "pair");
  CHECK(left_out.rows()[6][3] == "a");
  std::string words;
  for (int i = 0; i < 100; ++i) words += "w ";
  const std::vector<std::string_view> long_row{words, "x y"};
  const std::vector<RowValues> long_rows{long_row};
  left_out.set(long_rows, {{0}, 1});
  REQUIRE(left_out.words()[0].size() == LeftOutWords::kMostWords + 2);
  CHECK(left_out.words()[0].back() == "y");
}

TEST_CASE("a word leaves no blank behind, and CJK characters are words") {
  using Words = std::vector<std::string>;
  const auto without = [](std::string_view text) {
    const std::vector<std::string_view> row{text};
    const std::vector<RowValues> rows{row};
    LeftOutWords left_out;
    left_out.set(rows, {{0}, {}});
    Words texts;
    for (const RowValues each : left_out.rows().subspan(1)) texts.emplace_back(each[0]);
    return std::pair(left_out.words()[0], texts);
  };
  CHECK(without("a red  sun").second == Words{"red  sun", "a sun", "a red"});
  CHECK(without("  one ").second == Words{""});
  CHECK(without("a\u3000b\u00a0c") ==
        std::pair(Words{"a", "b", "c"}, Words{"b\u00a0c", "a\u3000c", "a\u3000b"}));
  CHECK(without("\u7ea2\u679c") == std::pair(Words{"\u7ea2", "\u679c"}, Words{"\u679c", "\u7ea2"}));
  CHECK(without("pay \u7ea2\u679c now") == std::pair(Words{"pay", "\u7ea2", "\u679c", "now"},
                                                     Words{"\u7ea2\u679c now", "pay \u679c now",
                                                           "pay \u7ea2 now", "pay \u7ea2\u679c"}));
  CHECK(without("A\u7ea2 b").second == Words{"\u7ea2 b", "A b", "A\u7ea2"});
}

TEST_CASE("words and the rest add up to the lead over the second label") {
  const std::vector<float> answers{1, 4, 3,   // the row
                                   1, 2, 3,   // without "tire"
                                   1, 5, 3};  // without "soap"
  const Explanation found = explained(answers, 3, std::vector<std::string>{"tire", "soap"});
  CHECK(found.label == 1);
  CHECK(found.against == 2);
  CHECK(found.lead == 1);
  CHECK(found.words[0].second == 2);
  CHECK(found.words[1].second == -1);
  CHECK(found.rest == 0);
  CHECK(parts_in_words(found.words, 9) == "tire +2.00; soap -1.00");
  CHECK(parts_in_words(found.words, 1) == "tire +2.00");
}

TEST_CASE("n-grams have the names and hashes that the cutter gives them") {
  std::vector<std::string> names;
  for (const auto& [hash, name] : named_ngrams("CDN Tire\u00c9 #7")) names.push_back(name);
  const auto has = [&](const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const char* name :
       {"cdn", "tire\u00e9", "cdn tire\u00e9", "' cdn '", "'ire\u00e9 '", "' #'", "'#7'"}) {
    CHECK_MESSAGE(has(name), name);
  }
  CHECK(!has("7"));
  CHECK(named_ngrams("").empty());
}

TEST_CASE("n-grams add up to the difference of two scores") {
  TextRows rows;
  const std::vector<std::pair<const char*, int32_t>> samples{
      {"red apple pie", 0}, {"apple tart", 0},   {"hammer and nails", 1},
      {"steel hammer", 1},  {"night flight", 2}, {"flight home", 2}};
  for (const auto& [text, label] : samples) rows.add(text, {&label, 1});
  rows.flush();
  NgramModel model = train_ngram_model(rows.descriptor(), {.outputs = 3});
  Explanation explanation;
  explanation.label = 1;
  explanation.against = 0;
  explain_ngrams(model, "STEEL hammer for apples", 2, {}, explanation);
  const auto scores = model.score("STEEL hammer for apples");
  const auto biases = model.weights().biases();
  double sum = 2 * (biases[1] - biases[0]);
  for (const auto& [name, value] : explanation.ngrams) sum += double(value);
  CHECK(sum == doctest::Approx(2 * (scores[1] - scores[0])).epsilon(1e-5));
  CHECK(explanation.ngrams.front().second > 0);
}

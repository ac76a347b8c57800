// Columns beside the text: amounts as people write them, values behind a text, features and file.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/sha256.h"
#include "data/columns/amount.h"
#include "tasks/classification/ngram_mix/ngram_file.h"
#include "tasks/classification/ngrams/training.h"
#include "tasks/classification/side_columns/unread_values.h"

using namespace finetune;

namespace {

const TextColumns kColumns{{0}, std::nullopt, {1}, {2}};

std::string input(std::string text, std::string_view amount, std::string_view division) {
  const std::string_view row[] = {text, amount, division};
  return with_columns(text, row, kColumns);
}

// Labels by the sign of the amount, and for "siege" by the division.
NgramModel trained() {
  TextRows rows;
  rows.columns = counts_of(kColumns);
  const char* amounts[] = {"10", "-10", "1,000.00", "(1,000.00)"};
  for (int i = 0; i < 40; ++i) {
    const bool is_siege = i % 5 == 0;
    const int32_t label = is_siege ? 2 : i % 2;
    rows.add(input("facture", amounts[i % 4], is_siege ? "siege" : "nord"), {&label, 1});
  }
  rows.flush();
  return train_ngram_model(rows.descriptor(), {.outputs = 3, .columns = rows.columns});
}

int32_t best(NgramModel& model, const std::string& row) {
  return labels_of_scores(model.score(row), ProblemType::single_label)[0];
}

std::string fault_of(std::string file) {
  file.resize(file.size() - 64);
  try {
    read_ngram_file(file + sha256_of(file), "f");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("amounts are read as people write them") {
  const std::pair<const char*, double> amounts[] = {{"12.5", 12.5},
                                                    {" -12.00 ", -12},
                                                    {"12.00-", -12},
                                                    {"(12.00)", -12},
                                                    {"1,234.56", 1234.56},
                                                    {"1.234,56", 1234.56},
                                                    {"1 234,56", 1234.56},
                                                    {"1'234.50", 1234.5},
                                                    {"1,234", 1234},
                                                    {"1.234", 1.234},
                                                    {"0,125", 0.125},
                                                    {"12,5", 12.5},
                                                    {"1,234,567", 1234567},
                                                    {"1.234.567,8", 1234567.8},
                                                    {"$40.13", 40.13},
                                                    {"-$1,000.00", -1000},
                                                    {"($3)", -3},
                                                    {"EUR -12,50", -12.5},
                                                    {"40 \xE2\x82\xAC", 40},
                                                    {"12.00 CR", 12},
                                                    {"12.00 DR", -12},
                                                    {"\xE2\x88\x92"
                                                     "5",
                                                     -5},
                                                    {"1\xC2\xA0"
                                                     "234",
                                                     1234},
                                                    {"+7", 7},
                                                    {"1e3", 1000},
                                                    {"100,-", 100},
                                                    {"CHF 100.--", 100},
                                                    {"-100,- EUR", -100},
                                                    {"100.00-", -100},
                                                    {"Rs.100", 100},
                                                    {"kr. 1 000,50", 1000.5},
                                                    {",50", 0.5}};
  for (const auto& [text, number] : amounts) {
    CAPTURE(text);
    REQUIRE(amount_of(text));
    CHECK(*amount_of(text) == doctest::Approx(number).epsilon(1e-12));
  }
  for (const char* text :
       {"", "-", "()", "EUR", "abcd 12", "12 dollars", "25.11.2026", "2026-11-25", "1,23.4,5",
        "12..5", "12.5.", "1 23", "--5", "nan", "inf", "12:30", ",", "1,2345,678"}) {
    CAPTURE(text);
    CHECK(!amount_of(text));
  }
}

TEST_CASE("values follow a text and come back, whatever marks are in them") {
  const std::string marks =
      "a\x1F"
      "b";
  const std::string whole = input(marks,
                                  "1\x1F"
                                  "2",
                                  "");
  const SideRow row = split_columns(whole, {1, 1});
  CHECK(row.text == marks);
  CHECK(row.values == std::vector<std::string_view>{"1 2", ""});
  CHECK(split_columns(marks, {}).text == marks);
}

TEST_CASE("a number is its standardised logarithm and its sign, a category itself") {
  ScaleSums sums(1);
  for (const char* amount : {"0", "1", "", "x", "3"}) {
    const std::string whole = input("t", amount, "d");
    sums.add(split_columns(whole, {1, 1}));
  }
  const std::vector<NumberScale> scales = sums.scales();
  const double one = std::log(2.0), three = std::log(4.0), mean = (one + three) / 3;  // ln(1 + x)
  CHECK(scales[0].mean == doctest::Approx(mean));
  CHECK(scales[0].deviation ==
        doctest::Approx(
            std::sqrt((mean * mean + std::pow(one - mean, 2) + std::pow(three - mean, 2)) / 3)));
  const SideColumns columns{scales, 1};
  const auto features = [&](const char* amount, const char* division) {
    return side_features(split_columns(input("t", amount, division), {1, 1}), columns);
  };
  const auto of = features("3", "d");
  REQUIRE(of.size() == 3);
  CHECK(double(of[0].value) == doctest::Approx((three - mean) / scales[0].deviation));
  CHECK(of[1].value == 1);
  CHECK(of[1].hash != features("-3", "d")[1].hash);
  CHECK(of[2].hash == features("?", " d ")[0].hash);
  CHECK(of[2].hash != features("", "e")[0].hash);
  CHECK(features("1e30", "d")[0].value == 5);
}

TEST_CASE("a linear model learns from columns, and its file has their scales") {
  NgramModel model = trained();
  const std::string file = ngram_file_of(model);
  NgramModel stored = read_ngram_file(file, "f").model;
  CHECK(ngram_file_of(stored) == file);
  for (NgramModel* each : {&model, &stored}) {
    CHECK(best(*each, input("facture", "77.10", "nord")) == 0);
    CHECK(best(*each, input("facture", "77.10-", "nord")) == 1);
    CHECK(best(*each, input("facture", "77.10", "siege")) == 2);
  }
  UnreadValues unread;
  for (const char* amount : {"1", "", "two"})
    unread.add(input("a", amount, "nord"), stored.index());
  unread.add(input("a", "1", "est"), stored.index());
  const std::vector<std::string> lines = unread.describe({"amount", "division"}, 1);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] ==
        "column 'amount': 2 of 4 rows have no number and count as the mean of training");
  CHECK(lines[1] ==
        "column 'division': 1 of 4 rows has a value that training had not; it is ignored");
}

TEST_CASE("faults of the columns in a file of n-grams are found") {
  const std::string file = ngram_file_of(trained());
  const size_t columns = 8 + 32, scales = columns + 8;
  const auto with = [&](size_t at, auto value) {
    std::string changed = file;
    std::memcpy(changed.data() + at, &value, sizeof value);
    return fault_of(changed);
  };
  CHECK(with(columns, uint32_t{1}) == "");
  CHECK(with(columns, uint32_t{65}).find("65 columns") != std::string::npos);
  CHECK(with(columns, uint32_t{2}).find("f: ") == 0);
  CHECK(with(scales, double(NAN)).find("mean nan") != std::string::npos);
  CHECK(with(scales + 8, 0.0).find("deviation 0") != std::string::npos);
  CHECK(fault_of(file.substr(0, scales + 4) + std::string(64, '0')) != "");
  CHECK(fault_of(file.substr(0, columns) + std::string(64, '0')) != "");
}

// Columns beside the text: amounts as people write them, values behind a text, features and file.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/sha256.h"
#include "data/columns/amount.h"
#include "error_line.h"
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
  return test::error_line(ExitCode::model, [&] { read_ngram_file(file + sha256_of(file), "f"); });
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
                                                    {",50", 0.5},
                                                    {"1,00,000", 100000},
                                                    {"\xE2\x82\xB9 12,34,567.50", 1234567.5},
                                                    {"1 234,50 z\xC5\x82", 1234.5},
                                                    {"-99,00 K\xC4\x8D", -99},
                                                    {"R$ 1.234,56", 1234.56},
                                                    {"100,50 kr.", 100.5},
                                                    {"Fr. 20.-", 20},
                                                    {"20 Fr.", 20},
                                                    {"100 dr", -100},
                                                    {"DR 1,234.50", -1234.5},
                                                    {"1.000,-", 1000},
                                                    {"1.000,-- EUR", 1000},
                                                    {"C$ 1.50", 1.5},
                                                    {"5 eur", 5}};
  for (const auto& [text, number] : amounts) {
    CAPTURE(text);
    REQUIRE(amount_of(text));
    CHECK(*amount_of(text) == doctest::Approx(number).epsilon(1e-12));
  }
  for (const char* text :
       {"",           "-",          "()",           "EUR",   "abcd 12", "12 dollars",
        "25.11.2026", "2026-11-25", "1,23.4,5",     "12..5", "12.5.",   "1 23",
        "1.00.000",   "1,00,00",    "1,000,00,000", "--5",   "nan",     "inf",
        "12:30",      ",",          "1,2345,678",   "5 Mrd", "2 mio",   "2 MIO",
        "1.5k",       "12h",        "A1B",          "12 S"}) {
    CAPTURE(text);
    CHECK(!amount_of(text));
  }
}

TEST_CASE("a column's other values say what a lone separator before three digits means") {
  CHECK(*amount_of("1.234", true) == 1234);
  CHECK(*amount_of("-1.234 EUR", true) == -1234);
  CHECK(*amount_of("1,234", true) == doctest::Approx(1.234));
  for (const char* text : {"12.5", "0.125", "1.234,50", "1.234.567", "1e3", "12,345,678"}) {
    CHECK(amount_of(text, true) == amount_of(text));
  }
  const std::pair<const char*, Decimals> shown[] = {
      {"1.234", Decimals::unsure_point},     {"(1,234)", Decimals::unsure_comma},
      {"1.000,-", Decimals::behind_comma},   {"1.234,5", Decimals::behind_comma},
      {"1.234.567", Decimals::behind_comma}, {"12,50 EUR", Decimals::behind_comma},
      {"0,125", Decimals::behind_comma},     {"1,234,567", Decimals::behind_point},
      {"12.5", Decimals::behind_point},      {"1,234.50", Decimals::behind_point},
      {"-3", Decimals::not_shown},           {"1 234", Decimals::not_shown},
      {"25.11.2026", Decimals::not_shown}};
  for (const auto& [text, decimals] : shown) {
    CAPTURE(text);
    CHECK(decimals_in(text) == decimals);
  }
  NumberColumn column;
  for (const char* text : {"1.234", "2.500", "7"}) column.votes.add(text);
  CHECK(!column.votes.comma_decimals());
  CHECK(describe_numbers(column, "x") ==
        std::vector<std::string>{"train: column 'x' does not show whether '1.234' is 1234; it is "
                                 "read as 1.234 (2 rows); decimals such as '1.234,00' would show "
                                 "it"});
  column.votes.add("3,99");
  CHECK(column.votes.comma_decimals());
  CHECK(describe_numbers(column, "x") ==
        std::vector<std::string>{
            "train: column 'x' has commas before decimals, so '1.234' is 1234 (2 rows)"});
}

TEST_CASE("a model keeps how its numbers are written") {
  TextRows rows;
  rows.columns = {1, 0};
  const TextColumns columns{{0}, std::nullopt, {1}, {}};
  const auto row = [&](std::string_view amount) {
    const std::string_view values[] = {"facture", amount};
    return with_columns("facture", values, columns);
  };
  const char* amounts[] = {"1,50", "1.500", "2,25", "2.250"};
  for (int i = 0; i < 40; ++i) {
    const int32_t label = i % 2;  // thousands have another label
    rows.add(row(amounts[i % 4]), {&label, 1});
  }
  rows.flush();
  NgramModel model = train_ngram_model(rows.descriptor(), {.outputs = 2, .columns = rows.columns});
  NgramModel stored = read_ngram_file(ngram_file_of(model), "f").model;
  CHECK(stored.index().columns().numbers[0].comma_decimals);
  CHECK(best(stored, row("1.900")) == 1);
  CHECK(best(stored, row("1,900")) == 0);
  std::string file = ngram_file_of(model);
  file[8 + 32 + 8 + 16] = 2;
  CHECK(fault_of(file).find("decimals are of kind 2") != std::string::npos);
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
  ScaleSums sums({NumberScale()});
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
  UnreadValues none;
  none.add(input("a", "?", "nord"), stored.index());
  CHECK(none.describe({"amount", "division"}, 1)[0] ==
        "warning: column 'amount': none of 1 row has a number; all count as the mean of training");
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

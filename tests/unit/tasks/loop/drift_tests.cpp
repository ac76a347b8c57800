// Tests of two samples beside scipy's values, samples of rows, and drift.json.
#include <doctest/doctest.h>

#include <random>

#include "core/error.h"
#include "core/files/files.h"
#include "error_line.h"
#include "tasks/classification/drift/drift_report.h"
#include "temporary_directory.h"

using namespace finetune;

TEST_CASE("tails are those of scipy 1.17.1") {
  const auto near = [](double value) { return doctest::Approx(value).epsilon(1e-12).scale(0); };
  CHECK(kolmogorov_tail(0) == 1);
  CHECK(kolmogorov_tail(0.3) == near(0.9999906941986655));
  CHECK(kolmogorov_tail(0.8) == near(0.5441424115741981));
  CHECK(kolmogorov_tail(0.999) == near(0.27107316411506394));
  CHECK(kolmogorov_tail(1) == near(0.26999967167735456));
  CHECK(kolmogorov_tail(1.36) == near(0.049485876755377876));
  CHECK(kolmogorov_tail(2.5) == near(7.453306344157342e-06));
  CHECK(chi_square_tail(0.5, 1) == near(0.47950012218695337));
  CHECK(chi_square_tail(3.84, 1) == near(0.05004352124870519));
  CHECK(chi_square_tail(10, 4) == near(0.04042768199451279));
  CHECK(chi_square_tail(100, 80) == near(0.064570368921133));
  CHECK(chi_square_tail(250, 76) == near(2.0442958173023298e-20));
  CHECK(chi_square_tail(0.001, 2) == near(0.9995001249791693));
  const std::vector<double> a{1, 2, 3, 4}, b{3, 4, 5, 6, 7};
  CHECK(kolmogorov_smirnov(a, b, {4, 5}).statistic == doctest::Approx(0.6));
  const std::vector<int64_t> c{30, 20, 50}, d{20, 40, 40};
  const CountsTest shares = same_shares(c, d, {100, 100});
  CHECK(shares.test.statistic == near(9.777777777777779));
  CHECK(shares.test.p == near(0.007529784255650024));
  CHECK(shares.largest == 1);
  // The last three are rare and joined: 96 and 4 beside 94 and 6.
  const std::vector<int64_t> e{96, 2, 1, 1}, f{94, 1, 5, 0};
  CHECK(same_shares(e, f, {100, 100}).test.statistic == near(2.0 / 95 + 2.0 / 5));
  CHECK(same_shares(c, d, {50, 50}).test.statistic == near(9.777777777777779 / 2));
}

namespace {

// A sample of rows with the text `text(row)`, of 5 tokens each.
template <typename Text>
std::optional<SampleSummary> sample_of(int64_t rows, Text text, std::vector<int32_t> ids = {}) {
  if (ids.empty()) ids = {101, 7, 8, 9, 102};
  const TokenizedSamples known{{101, 7, 8, 100, 102}, {0, 5}, {5}, {}};
  const TokenizedSamples samples{ids, {0, int64_t(ids.size())}, {uint32_t(ids.size())}, {}};
  RowSample sample(std::make_shared<SeenTokens>(known, 100), ProblemType::single_label, 3);
  for (int64_t row = 0; row < rows; ++row) {
    const std::string words = text(row);
    const std::string_view values[] = {words};
    const auto traits = sample.traits_of(row, values, {{0}, std::nullopt}, samples, {0, 1});
    sample.count_row();
    if (traits) sample.add(*traits, std::vector<float>{1, float(row % 10), 3});
  }
  return sample.summary(2);
}

std::string numbered(int64_t row) {
  return concat("row ", row);
}

}  // namespace

TEST_CASE("a sample of rows has their words, new tokens, labels and leads") {
  const auto all = sample_of(200, numbered);
  REQUIRE(all);
  CHECK(all->rows == 200);
  CHECK(all->distinct == 200);
  CHECK(all->values[0] == std::vector<double>(200, 2));
  CHECK(all->values[1].front() == 5);
  CHECK(all->values[1].back() == 7);
  // 7, 8 and (7, 8) are known, of 7, 8, 9 and two pairs.
  CHECK(all->values[2] == std::vector<double>(200, 0.4));
  CHECK(all->labels == std::vector<int64_t>{0, 140, 60});  // the first of equals: 1 of 3 and 3
  CHECK(all->values[3].front() == 0);
  CHECK(all->values[3].back() == 3);  // (9 - 3) / 2
  // The token of the unknown is new, though the training row has it.
  CHECK(sample_of(60, numbered, {101, 7, 100, 102})->values[2].front() == doctest::Approx(0.66667));
}

TEST_CASE("equal texts of a block count once, and large inputs are sampled") {
  const auto repeated = sample_of(640, [](int64_t row) { return numbered(row % 2 ? 0 : row); });
  REQUIRE(repeated);
  CHECK(repeated->distinct == 320);
  CHECK(repeated->values[0].size() > 320);
  CHECK(repeated->values[0].size() <= 320 + 10);  // once in each of ten blocks
  CHECK(!sample_of(1000, [](int64_t row) { return numbered(row % 49); }));
  const auto many = sample_of(50'000, numbered);
  CHECK(many->rows == 50'000);
  CHECK(many->distinct == int64_t(RowSample::kMostRows));
  // Of the whole input: rows with numbers of one, two, ... five digits.
  CHECK(many->mean(Trait::characters) == doctest::Approx(4 + 4.778).epsilon(0.01));
}

TEST_CASE("tokens and pairs that training lacks are new, and the unknown token always is") {
  const TokenizedSamples two{{101, 7, 102, 101, 9, 8, 102}, {0, 3, 7}, {3, 4}, {}};
  const SeenTokens seen(two, 100);
  const std::vector<int32_t> sample{101, 7, 8, 100, 102};
  for (const SeenTokens& of : {seen, SeenTokens(seen.hex(), 100)}) {
    CHECK(of.count(sample).fresh == 3);  // 7 8, 100 and 8 100
    CHECK(of.count(sample).all == 5);
  }
  CHECK(SeenTokens("0123", 100).is_empty());
}

TEST_CASE("inputs of another kind differ from training, and the report says how") {
  const auto training = sample_of(1000, numbered);
  const std::vector<std::string> labels{"a", "b", "c"};
  const DriftReport same(*training, *sample_of(300, [](int64_t row) { return numbered(3 * row); }),
                         true);
  CHECK(same.line(ProblemType::single_label, labels).empty());
  const auto longer = sample_of(300, [](int64_t row) { return concat("one ", row, " two"); });
  const std::string line =
      DriftReport(*training, *longer, true).line(ProblemType::single_label, labels);
  CHECK(line ==
        "the rows differ from those of training (p below 0.000001): 3 words a text "
        "(training: 2), 10.6 characters a text (6.89)");
  const auto newer = sample_of(300, numbered, {101, 20, 21, 102});
  const DriftReport fresh(*training, *newer, true);
  CHECK(fresh.line(ProblemType::single_label, labels)
            .find("100 % of their word pieces and pairs are "
                  "new (training: 40 %)") != std::string::npos);
  // The training rows themselves have fewer new tokens than the evaluation rows.
  CHECK_FALSE(DriftReport(*newer, *sample_of(300, numbered), true).differs());
  const std::string json = fresh.json(labels);
  CHECK(json.find(R"("differs":true)") != std::string::npos);
  CHECK(json.find(R"("statistic":1.0,"training":0)") != std::string::npos);
  CHECK(json.find("answer") != std::string::npos);
  // Where texts are cut or answered otherwise, words and characters alone are compared.
  const DriftReport other(*training, *newer, false);
  CHECK(other.json(labels).find("new_tokens") == std::string::npos);
  CHECK(other.json(labels).find("answer") == std::string::npos);
}

TEST_CASE("a file that was changed is an error of the model") {
  const test::TemporaryDirectory directory;
  const auto summary = sample_of(1000, numbered);
  const TokenizedSamples known{{101, 7, 8, 9, 102}, {0, 5}, {5}, {}};
  const SeenTokens seen(known, 100);
  const std::string text = drift_file_of(*summary, seen, "max-length 8");
  const auto file = directory.path() / kDriftFile;
  CHECK(!read_drift(directory.path(), 3, 100));
  const auto refusal = [&](std::string_view bytes, int64_t outputs = 3) {
    write_file(file, bytes);
    return test::error_line(ExitCode::model, [&] { read_drift(directory.path(), outputs, 100); });
  };
  CHECK(refusal(text).empty());
  const auto stored = read_drift(directory.path(), 3, 100);
  CHECK(stored->summary.values == summary->values);
  CHECK(stored->summary.labels == summary->labels);
  CHECK(stored->answers == "max-length 8");
  CHECK(stored->seen->count(std::vector<int32_t>{101, 7, 8, 50, 102}).fresh == 2);
  CHECK(refusal(text, 4).find("of another model") != std::string::npos);
  CHECK(refusal(text.substr(0, text.size() / 2)).find("not a JSON object") != std::string::npos);
  std::string other = text;
  other.replace(other.find("\"rows\":1000"), 11, "\"rows\":1001");
  CHECK(refusal(other).find("its sha256 is another") != std::string::npos);
  CHECK(refusal("{}").find("a value is missing") != std::string::npos);
}

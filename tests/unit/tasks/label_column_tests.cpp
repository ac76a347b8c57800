// Label columns with amounts or texts; predictions as JSON Lines.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "../contains.h"
#include "core/text/text.h"
#include "data/columns/label_column.h"
#include "tasks/classification/predictions/prediction_format.h"

using namespace finetune;
using finetune::test::contains;

namespace {

std::vector<std::string> numbered(int count, const std::string& before, const std::string& behind) {
  std::vector<std::string> labels;
  for (int i = 0; i < count; ++i) labels.push_back(concat(before, i, behind));
  return labels;
}

}  // namespace

TEST_CASE("an amount has digits behind its point or comma") {
  for (const char* amount : {"12.50", "-3,99", "1 234.56", "1,234.56", "$40.13", "€ 0,99",
                             "40.13 EUR", "(12.00)", "+0.5", " 7.25 ", "1'000.00"}) {
    CAPTURE(amount);
    CHECK(is_amount(amount));
  }
  for (const char* other :
       {"", "12", "-3", "food", "v", "A.", ".", "1.", "Room 3.5 b", "3 of 4.5 x", "2026-11-25",
        "food 12.50", "1.2a", "v1.2", "25.11.2026", "1.2.3"}) {
    CAPTURE(other);
    CHECK(!is_amount(other));
  }
}

TEST_CASE("amounts as labels are an error if nearly each row has its own") {
  const auto amounts = numbered(200, "", ".99");
  CHECK(look_at_labels(amounts, 200).is_error);
  CHECK(look_at_labels(amounts, 799).is_error);
  const LabelFinding several = look_at_labels(amounts, 800);  // four rows each
  CHECK(!several.is_error);
  CHECK(contains(several.text, "has 200 different values in 800 rows"));
  CHECK(contains(several.text, "--regression"));
  CHECK(look_at_labels(numbered(99, "", ".5"), 400).text.empty());  // grades
  CHECK(look_at_labels(numbered(19, "", ".5"), 19).text.empty());   // a handful of rows
  CHECK(look_at_labels({}, 0).text.empty());
}

TEST_CASE("labels that mostly have one row are odd, but not an error") {
  const LabelFinding found = look_at_labels(numbered(60, "shop ", ""), 100);
  CHECK(!found.is_error);
  CHECK(contains(found.text, "most have a single row"));
  CHECK(look_at_labels(numbered(60, "shop ", ""), 120).text.empty());
  CHECK(!look_at_labels(numbered(60, "", ""), 60).is_error);  // whole numbers may be codes
}

TEST_CASE("a number that is not finite is null in JSON Lines") {
  PredictionFormat format;
  format.problem = ProblemType::regression;
  format.json_lines = true;
  const PredictionLines lines(format, {"text"});
  const std::vector<std::string_view> row{"a"};
  const auto line = [&](float value) {
    std::string out = lines.begin(row);
    lines.finish(&value, out);
    return out;
  };
  CHECK(lines.header().empty());
  CHECK(line(0.5f) == "{\"text\":\"a\",\"label\":0.5}\n");
  CHECK(line(std::nanf("")) == "{\"text\":\"a\",\"label\":null}\n");
  CHECK(line(std::numeric_limits<float>::infinity()) == "{\"text\":\"a\",\"label\":null}\n");
  CHECK(line(-std::numeric_limits<float>::infinity()) == "{\"text\":\"a\",\"label\":null}\n");
}

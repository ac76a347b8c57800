// The order of labels, sorted or given by a model.
#include <doctest/doctest.h>

#include "core/error.h"
#include "data/labels.h"

using namespace finetune;

TEST_CASE("labels are sorted by code point") {
  LabelMap map = LabelMap::from_values({"b", "é", "a", "10", "b", "9", "Z", "\U0001F600", "｡", ""});
  // U+FF61 comes before U+1F600: code points, not UTF-16 units.
  CHECK(map.names() ==
        std::vector<std::string>{"", "10", "9", "Z", "a", "b", "é", "｡", "\U0001F600"});
  CHECK(map.size() == 9);
  for (int32_t id = 0; id < map.size(); ++id) CHECK(map.find(map.names()[size_t(id)]) == id);
  CHECK(map.find("c") == -1);
  CHECK(LabelMap().find("a") == -1);
}

TEST_CASE("labels that are all numbers are sorted as numbers") {
  CHECK(LabelMap::from_values({"10", "9", "0", "21", "-3", "2.5", "1e1"}).names() ==
        std::vector<std::string>{"-3", "0", "2.5", "9", "10", "1e1", "21"});
  CHECK(LabelMap::from_values({"1.0", "1", "01", "0"}).names() ==
        std::vector<std::string>{"0", "01", "1", "1.0"});
  // If one is not a number, all are texts.
  for (const char* other : {"x", "", "nan", "inf", "1e400", " 3", "0x1"}) {
    CHECK(LabelMap::from_values({"10", "9", other}).find("10") <
          LabelMap::from_values({"10", "9", other}).find("9"));
  }
}

TEST_CASE("a model's own map keeps its order") {
  LabelMap map({"positive", "negative"});
  CHECK(map.find("positive") == 0);
  CHECK(map.find("negative") == 1);
  CHECK_THROWS_WITH_AS(LabelMap({"a", "b", "a"}), "the label map names 'a' twice, as 0 and 2",
                       Error);
}

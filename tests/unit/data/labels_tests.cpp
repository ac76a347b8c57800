// The order of labels, sorted or as a model has them.
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

TEST_CASE("a model's own map keeps its order") {
  LabelMap map({"positive", "negative"});
  CHECK(map.find("positive") == 0);
  CHECK(map.find("negative") == 1);
  CHECK_THROWS_WITH_AS(LabelMap({"a", "b", "a"}), "the label map names 'a' twice, as 0 and 2",
                       Error);
}

// The files in data/samples match their README.
#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "data/labels.h"
#include "data/rows/records.h"
#include "data/squad.h"

using namespace finetune;

namespace {

const fs::path kSamples = FINETUNE_SAMPLES;

}  // namespace

TEST_CASE("the samples match their README") {
  Table train = read_table({kSamples / "toronto-train.csv"});
  Table dev = read_table({kSamples / "toronto-dev.csv"});
  CHECK(train.rows().size() == 4000);
  CHECK(dev.rows().size() == 1000);
  const std::vector<std::string> columns = {"text", "amount", "category", "gl_category"};
  CHECK(train.columns() == columns);
  CHECK(dev.columns() == columns);
  std::vector<std::string_view> labels;
  for (const Row& row : train.rows()) labels.push_back(row.values[train.column("category")]);
  LabelMap map = LabelMap::from_values(labels);
  CHECK(map.size() == 23);
  for (const Row& row : dev.rows()) CHECK(map.find(row.values[dev.column("category")]) >= 0);
  for (const Table* table : {&train, &dev}) {
    for (const Row& row : table->rows()) CHECK_FALSE(row.values[table->column("text")].empty());
  }

  SquadData questions = read_squad({kSamples / "squad-train.json"}, 0, true);
  CHECK(questions.questions.size() == 438);
  SquadData held_out = read_squad({kSamples / "squad-dev.json"}, 0, true);
  CHECK(held_out.questions.size() == 112);
  for (const SquadData* data : {&questions, &held_out}) {
    for (const SquadQuestion& question : data->questions) {
      CHECK((question.is_impossible || question.found == TargetFound::first_answer));
    }
  }
  CHECK(looks_like_squad(kSamples / "squad-train.json"));
  CHECK_FALSE(looks_like_squad(kSamples / "toronto-train.csv"));
}

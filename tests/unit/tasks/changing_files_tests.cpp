// Evaluating files that change between the two readings.
#include <doctest/doctest.h>

#include "classification_fixture.h"
#include "error_line.h"
#include "tasks/classification/classification_task.h"
#include "tasks/classification/evaluation/classification_evaluator.h"

using namespace finetune;
using namespace finetune::test;

namespace {

const std::vector<float> kThreeLogits{1, -.5f, .25f, 2, 0, -1};  // (3, 2)

}  // namespace

TEST_CASE("a file that changes between the readings of an evaluation") {
  TemporaryDirectory folder;
  EncoderConfig config;
  config.labels = {"a", "c"};
  config.problem_type = "single_label_classification";
  TaskOptions options = classification_defaults(config);
  options.eval_files = {folder.write("e.csv", "text,label\nr,a\n"),
                        folder.write("f.csv", "text,label\ns,c\nt,a\n")};

  const TaskModel model{kTokenizer, config, true};
  const auto longer = ClassificationEvaluator::of_files(options, model);
  folder.write("f.csv", "text,label\ns,c\nt,a\nu,c\n");  // as a log grows
  const auto chunk = longer->next();
  REQUIRE(chunk);
  CHECK(chunk->samples.size() == 3);
  CHECK(!longer->next());
  for (uint32_t i : {0, 1, 2}) longer->add(batch_of({i}), kThreeLogits.data() + 2 * i);
  longer->metrics();

  const auto shorter = ClassificationEvaluator::of_files(options, model);
  folder.write("f.csv", "text,label\ns,c\n");
  REQUIRE(shorter->next());
  CHECK(test::error_line(ExitCode::data, [&] { shorter->next(); }) ==
        (folder / "e.csv").string() +
            ": the data had 4 usable rows at first, now 2: they have changed while they were "
            "evaluated");
}

// Options in config.json that no command line could have set.
#include <doctest/doctest.h>

#include "../contains.h"
#include "classification_fixture.h"
#include "tasks/classification/classification_task.h"
#include "tasks/classification/model_options.h"

using namespace finetune;
using namespace finetune::test;

TEST_CASE("config.json with values that no option could have set") {
  TemporaryDirectory folder;
  EncoderConfig config;
  config.labels = {"a", "b"};
  const auto refusal = [&](std::string_view stored) {
    config.source_json = concat(R"({"finetune": {)", stored, "}}");
    const Failure failure = failure_of(folder, [&] {
      classification_defaults(config);
      stored_class_weights(config, 2);
    });
    CHECK(failure.code == ExitCode::model);
    return failure.message;
  };
  for (const char* smoothing : {"1", "-0.1", "1e300"}) {
    CHECK(refusal(concat(R"("label_smoothing": )", smoothing)).ends_with("not from 0 to below 1"));
  }
  for (const char* weight : {"0", "-1", "1e30", "1e300"}) {
    CHECK(contains(refusal(concat(R"("class_weights": [1, )", weight, "]")),
                   "finetune.class_weights has "));
  }
  for (const char* threshold : {"-0.1", "1.5", "1e300"}) {
    CHECK(contains(refusal(concat(R"("calibration": {"thresholds": [0.5, )", threshold, "]}")),
                   "finetune.calibration.thresholds has "));
  }
  CHECK(contains(refusal(R"("text_pair_column": "b", "max_length": 4)"), "not from 5 to 512"));
  CHECK(contains(refusal(R"("label_column": "")"), "finetune.label_column is empty"));
  CHECK(contains(refusal(R"("text_column": ["a"], "label_column": "a")"), "a text column too"));
  CHECK(contains(refusal(R"("text_pair_column": "a", "label_column": "a")"), "a text column too"));
  CHECK(contains(refusal(R"("text_column": ["a", "b", "a"])"), "text_column has 'a' twice"));
  CHECK(contains(refusal(R"("text_column": ["a", ""])"), "text_column has an empty name"));
  config.problem_type = "multi_label_classification";
  CHECK(contains(refusal(R"("label_smoothing": 0.1)"), "is for one label a row"));
}

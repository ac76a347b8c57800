// Folds, scores of rows that a model was not trained on, and confident learning by hand.
#include <doctest/doctest.h>

#include <set>

#include "core/text/text.h"
#include "tasks/classification/label_errors/suspect_labels.h"
#include "tasks/classification/ngrams/text_rows.h"
#include "tasks/classification/ngrams/training.h"
#include "tasks/classification/rows/folds.h"

using namespace finetune;

namespace {

RowLabels row_labels(const std::vector<int32_t>& ids) {
  RowLabels labels;
  for (const int32_t id : ids) {
    labels.ids.push_back(id);
    labels.begins.push_back(labels.ids.size());
  }
  return labels;
}

// Of rows "red paint 0", "red paint 1", ..., "blue paint 4", ...
std::vector<float> scores(const std::vector<int32_t>& labels, int folds, int workers = 1) {
  const char* colours[] = {"red", "red", "red", "red", "blue", "blue", "blue", "blue", "green"};
  TextRows rows;
  for (size_t i = 0; i < labels.size(); ++i) {
    rows.add(concat(colours[i], " paint ", i), {&labels[i], 1});
  }
  rows.flush();
  return out_of_fold_scores(rows.descriptor(), {.outputs = 3, .workers = workers}, folds);
}

}  // namespace

TEST_CASE("folds keep equal texts together and spread the texts of each label") {
  const std::vector<int32_t> labels{0, 0, 0, 0, 1, 1, 1, 2, 0};
  const std::vector<uint64_t> texts{10, 11, 12, 13, 20, 21, 22, 30, 10};
  const std::vector<int32_t> folds = folds_of(texts, row_labels(labels), 3);
  CHECK(folds == std::vector<int32_t>{0, 1, 2, 0, 1, 2, 0, 2, 0});
  // A text with two labels goes with its first one.
  CHECK(folds_of(std::vector<uint64_t>{7, 8, 7}, row_labels({0, 0, 1}), 2) ==
        std::vector<int32_t>{0, 1, 0});
}

TEST_CASE("out-of-fold scores know a label only from other folds, with any number of workers") {
  const std::vector<int32_t> labels{0, 0, 0, 0, 1, 1, 1, 1, 2};
  const std::vector<float> found = scores(labels, 2);
  REQUIRE(found.size() == labels.size() * 3);
  for (size_t row = 0; row < 8; ++row) {
    const auto own = size_t(labels[row]);
    CHECK(found[row * 3 + own] > found[row * 3 + 1 - own]);
  }
  CHECK(found[8 * 3 + 2] == -kUnseenScore);  // the only row of its label
  CHECK(found == scores(labels, 2, 3));
  // The row itself does not count: red paint labelled as blue still looks red.
  std::vector<int32_t> wrong = labels;
  wrong[3] = 1;
  const std::vector<float> with_wrong = scores(wrong, 4);
  CHECK(with_wrong[3 * 3] > with_wrong[3 * 3 + 1]);
}

TEST_CASE("suspect labels are ranked by their probability, and confident ones reach the mean") {
  OutOfFold rows;
  rows.outputs = 2;
  rows.labels = {0, 0, 0, 1, 1, 0};
  rows.probabilities = {0.9f, 0.1f, 0.25f, 0.75f, 0.1f, 0.9f, 0.2f, 0.8f, 0.4f, 0.6f, 0, 1};
  rows.is_judged = {1, 1, 1, 1, 1, 0};
  const SuspectLabels found = suspect_labels(rows);
  REQUIRE(found.means.size() == 2);
  CHECK(found.means[0] == doctest::Approx((0.9 + 0.25 + 0.1) / 3));
  CHECK(found.means[1] == doctest::Approx(0.7));
  CHECK(found.unjudged == 1);
  REQUIRE(found.rows.size() == 2);
  CHECK(found.rows[0].row == 2);
  CHECK(found.rows[0].given == 0);
  CHECK(found.rows[0].likely == 1);
  CHECK(found.rows[0].is_confident);
  CHECK(found.rows[1].row == 1);
  CHECK(found.rows[1].is_confident);
  rows.probabilities[6] = 0.01f;  // label 1 is now expected to be surer
  rows.probabilities[7] = 0.99f;
  CHECK(!suspect_labels(rows).rows[1].is_confident);
}

TEST_CASE("a label without rows that can be judged is never suggested") {
  OutOfFold rows;
  rows.outputs = 3;
  rows.labels = {0, 0, 1, 2};
  rows.probabilities = {0.2f, 0.1f, 0.7f, 0.1f, 0.3f, 0.6f, 0.1f, 0.8f, 0.1f, 0.5f, 0.5f, 0};
  rows.is_judged = {1, 1, 1, 0};
  const SuspectLabels found = suspect_labels(rows);
  REQUIRE(found.rows.size() == 1);
  CHECK(found.rows[0].row == 1);
  CHECK(found.rows[0].likely == 1);
}

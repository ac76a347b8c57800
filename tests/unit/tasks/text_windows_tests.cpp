// Long texts in windows: their cuts, their use in training, and the options stored in a model.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "classification_fixture.h"
#include "data/packing.h"
#include "tasks/classification/classification_task.h"
#include "tasks/classification/model_options.h"
#include "tasks/objective.h"
#include "tasks/texts/cut_texts.h"
#include "tasks/texts/text_windows.h"

using namespace finetune;
using namespace finetune::test;

namespace {

using Pair = std::optional<int64_t>;

std::vector<TextWindow> windows_of(int64_t first, Pair second, int64_t max_length,
                                   LongTexts options, int64_t lost = 0) {
  std::vector<TextWindow> out;
  const int64_t budget = max_length - (second ? 3 : 2);
  CHECK(cut_to_windows(first, second, budget, options, out) == lost);
  return out;
}

std::vector<std::pair<int64_t, int64_t>> firsts(const std::vector<TextWindow>& windows) {
  std::vector<std::pair<int64_t, int64_t>> out;
  for (const TextWindow& w : windows) out.emplace_back(w.first.begin, w.first.end);
  return out;
}

using Ranges = std::vector<std::pair<int64_t, int64_t>>;

std::string words(int count) {
  std::string out = "a";
  for (int i = 1; i < count; ++i) out += " " + std::string(size_t(i % 9 + 1), 'w');
  return out;
}

}  // namespace

TEST_CASE("a text of up to max-length is one window, a longer one several that end with it") {
  const LongTexts two{true, 2, 16};  // room for 8 tokens
  CHECK(firsts(windows_of(0, {}, 10, two)) == Ranges{{0, 0}});
  CHECK(firsts(windows_of(1, {}, 10, two)) == Ranges{{0, 1}});
  CHECK(firsts(windows_of(8, {}, 10, two)) == Ranges{{0, 8}});
  CHECK(firsts(windows_of(9, {}, 10, two)) == Ranges{{0, 8}, {6, 9}});
  CHECK(firsts(windows_of(14, {}, 10, two)) == Ranges{{0, 8}, {6, 14}});
  CHECK(firsts(windows_of(15, {}, 10, two)) == Ranges{{0, 8}, {6, 14}, {12, 15}});
  CHECK(firsts(windows_of(15, {}, 10, {true, 0, 16})) == Ranges{{0, 8}, {8, 15}});
  CHECK(firsts(windows_of(13, {}, 10, {true, 100, 16})) == Ranges{{0, 8}, {4, 12}, {8, 13}});
  CHECK(firsts(windows_of(20, {}, 10, {true, 2, 2}, 6)) == Ranges{{0, 8}, {6, 14}});
  CHECK(firsts(windows_of(3, {}, 3, {true, 9, 16})) == Ranges{{0, 1}, {1, 2}, {2, 3}});
  CHECK(firsts(windows_of(20, {}, 10, {}, 12)) == Ranges{{0, 8}});
}

TEST_CASE("of a pair the longer text has windows, each with the other one") {
  const LongTexts options{true, 1, 16};  // room for 8 tokens
  const auto first = windows_of(10, 3, 11, options);
  CHECK(firsts(first) == Ranges{{0, 5}, {4, 9}, {8, 10}});
  for (const TextWindow& w : first) CHECK((w.second.begin == 0 && w.second.end == 3));
  const auto second = windows_of(2, 9, 11, options);
  REQUIRE(second.size() == 2);
  CHECK(firsts(second) == Ranges{{0, 2}, {0, 2}});
  CHECK((second[1].second.begin == 5 && second[1].second.end == 9));
  CHECK(windows_of(4, 4, 11, options).size() == 1);
  CHECK(windows_of(0, 9, 11, options).size() == 2);
  // The second text gets at most half of the room.
  const auto both = windows_of(7, 10, 11, options, 3);
  CHECK(firsts(both) == Ranges{{0, 4}, {0, 4}, {0, 4}});
}

TEST_CASE("windows hold every token, and one window is what cutting leaves") {
  for (int64_t first : {0, 1, 2, 5, 9, 10, 11, 12, 30, 41}) {
    for (Pair second : {Pair(), Pair(0), Pair(1), Pair(5), Pair(10), Pair(11), Pair(40)}) {
      for (int64_t stride : {0, 1, 3, 1000}) {
        const int64_t max_length = 13, budget = max_length - (second ? 3 : 2);
        std::vector<TextWindow> all, one, cut;
        const int64_t lost = cut_to_windows(first, second, budget, {true, stride, 1000}, all);
        const int64_t shorter = std::min(first, second.value_or(0));
        const bool fits = first + second.value_or(0) <= budget;
        CHECK(lost == (fits ? 0 : std::max<int64_t>(0, shorter - budget / 2)));
        int64_t reached[2] = {0, 0};
        for (const TextWindow& w : all) {
          CHECK(w.first.end - w.first.begin + w.second.end - w.second.begin <= budget);
          CHECK((w.first.begin <= reached[0] && w.second.begin <= reached[1]));
          reached[0] = std::max(reached[0], w.first.end);
          reached[1] = std::max(reached[1], w.second.end);
        }
        CHECK(first + second.value_or(0) - reached[0] - reached[1] == lost);

        CHECK(cut_to_windows(first, second, budget, {true, stride, 1}, one) ==
              cut_to_windows(first, second, budget, {}, cut));
        REQUIRE((one.size() == 1 && cut.size() == 1));
        CHECK((one[0].first.end == cut[0].first.end && one[0].second.end == cut[0].second.end));
      }
    }
  }
}

TEST_CASE("windows are samples with their row's target, and weigh as much as one") {
  TemporaryDirectory folder;
  TaskOptions options;
  options.max_length = 10;
  options.long_texts = {true, 2, 3};
  const auto file = [&](const char* a, const char* b, const char* c) {
    return folder.write("t.csv", concat("text,label\n", words(14), ",", a, "\n", words(3), ",", b,
                                        "\n", words(40), ",", c, "\n"));
  };
  SUBCASE("one label") {
    options.train_files = {file("x", "y", "x")};
    options.eval_files = options.train_files;
    options.balanced_class_weights = true;
    ClassificationTask task(options, kTokenizer, EncoderConfig{}, false);
    const TrainingArrays arrays = task.training_arrays();
    REQUIRE(arrays.samples.size() == 6);
    CHECK(task.train_set().examples == 3);
    CHECK(task.train_set().first_window == std::vector<int64_t>{0, 2, 3, 6});
    CHECK(std::ranges::equal(arrays.labels, std::vector<int32_t>{0, 0, 1, 0, 0, 0}));
    const float third = float(1.0 / 3);
    CHECK(std::ranges::equal(arrays.sample_weights,
                             std::vector<float>{.5f, .5f, 1, third, third, third}));
    CHECK(task.class_weights()[0] == 0.75f);  // of two rows out of three, not of five windows
    const auto objective = make_objective(arrays);
    CHECK(objective->loss_denominator(std::vector<uint32_t>{0, 1, 2, 3, 4, 5}) ==
          doctest::Approx(3));
    CHECK(objective->loss_denominator(std::vector<uint32_t>{1, 2}) ==
          doctest::Approx(0.5 * 0.75 + 1.5));
    PackedBatch batch;
    pack(objective->samples(), std::vector<uint32_t>{4, 2}, {}, batch);
    objective->complete(batch);
    CHECK(batch.weights == std::vector<float>{third, 1});
    pack(objective->samples(), std::vector<uint32_t>{1}, {}, batch);
    CHECK(batch.weights.empty());

    const std::vector<std::string> lines = task.describe();
    CHECK(lines[0] ==
          "train: 3 rows, 6 windows of up to 10 tokens, 55 tokens in all; 2 texts have "
          "several windows, 1 cut at 3 windows of 10 tokens");
    CHECK(lines[2] ==
          "warning: train: 33.3 % of the texts are cut at 3 windows of 10 tokens, which "
          "loses 31.7 % of all tokens; a larger --max-windows keeps more");  // 20 of 63
    // Evaluation has rows.
    const auto evaluation = task.start_evaluation();
    const std::vector<float> logits{2, 1, 0, 3, 1, 5};
    add_all(*evaluation, logits);
    CHECK(evaluation->metrics()["eval_accuracy"] == doctest::Approx(2.0 / 3));
    task.release_training_arrays();
    CHECK(task.train_set().samples.size() == 0);
    CHECK(task.training_arrays().sample_weights.empty());
  }
  SUBCASE("several labels") {
    options.train_files = {file("x;y", "", "y")};
    options.multi_label_separator = ";";
    ClassificationTask task(options, kTokenizer, EncoderConfig{}, false);
    const TrainingArrays arrays = task.training_arrays();
    CHECK(std::ranges::equal(arrays.set_offsets, std::vector<int64_t>{0, 2, 4, 4, 5, 6, 7}));
    CHECK(std::ranges::equal(arrays.set_ids, std::vector<int32_t>{0, 1, 0, 1, 1, 1, 1}));
    CHECK(arrays.sample_weights.size() == 6);
  }
  SUBCASE("numbers") {
    options.train_files = {file("1.5", "2", "-3")};
    options.regression = true;
    options.standardized_targets = false;
    ClassificationTask task(options, kTokenizer, EncoderConfig{}, false);
    const TrainingArrays arrays = task.training_arrays();
    CHECK(std::ranges::equal(arrays.targets, std::vector<float>{1.5f, 1.5f, 2, -3, -3, -3}));
    CHECK(arrays.labels.empty());
  }
}

TEST_CASE("a weighted sample's loss and gradient scale with its weight") {
  TemporaryDirectory folder;
  TaskOptions options;
  options.train_files = {
      folder.write("t.csv", concat("text,label\n", words(8), ",x\n", words(20), ",y\n"))};
  options.max_length = 10;
  options.long_texts = {true, 0, 16};
  ClassificationTask task(options, kTokenizer, EncoderConfig{}, false);
  const auto backend = make_reference_backend();
  const auto objective = make_objective(task.training_arrays());
  PackedBatch batch;
  pack(objective->samples(), std::vector<uint32_t>{0, 1, 2, 3}, {}, batch);
  objective->complete(batch);
  objective->reserve(*backend, 4);
  objective->upload_targets(*backend, batch);
  DeviceBatch device(*backend, batch.tokens(), 4);
  std::vector<float> losses(4), gradient(8);
  std::vector<float> logits{1, 0, 2, 1, 2, 1, 2, 1};
  const auto compute = [&](float scale) {
    device.upload(batch, scale);
    objective->loss(*backend, device, matrix(logits.data(), 4, 2), vector(losses.data(), 4),
                    matrix(gradient.data(), 4, 2));
    double sum = 0;
    backend->add_losses(vector(losses.data(), 4), device.loss_weights(), false, &sum);
    return sum;
  };
  const double loss = compute(0.5f);
  const double right = std::log1p(std::exp(-1)), wrong = std::log1p(std::exp(1));
  CHECK(loss == doctest::Approx(right + wrong));
  const double share = 1 / (1 + std::exp(-1));
  CHECK(gradient[1] == doctest::Approx(0.5 * (1 - share)));
  for (size_t i : {2, 4, 6}) CHECK(gradient[i] == doctest::Approx(0.5 / 3 * share));
  batch.weights.clear();
  CHECK(compute(0.5f) == doctest::Approx(right + 3 * wrong));
  CHECK(gradient[4] == doctest::Approx(0.5 * share));
}

TEST_CASE("a model stores how long texts were treated") {
  TemporaryDirectory folder;
  TaskOptions options;
  options.train_files = {folder.write("t.csv", "text,label\na,x\nb,y\n")};
  EncoderConfig config;
  config.source_json = ClassificationTask(options, kTokenizer, config, false).config_json();
  CHECK(config.source_json.find("window") == std::string::npos);
  CHECK(!classification_defaults(config).long_texts.in_windows);
  options.long_texts = {true, 7, 5};
  config.source_json = ClassificationTask(options, kTokenizer, config, false).config_json();
  const LongTexts stored = classification_defaults(config).long_texts;
  CHECK((stored.in_windows && stored.stride == 7 && stored.most_windows == 5));
  for (const char* bad :
       {R"("long_text": "parts")", R"("long_text": 1)", R"("window_stride": -1)",
        R"("max_windows": 0)", R"("max_windows": 1e300)", R"("window_stride": "x")"}) {
    config.source_json = concat(R"({"finetune": {)", bad, "}}");
    CHECK(failure_of(folder, [&] { classification_defaults(config); }).code == ExitCode::model);
  }
}

// The mix with n-grams: weights by hand and against neighbours, its file, malicious files.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "core/error.h"
#include "core/numeric/philox.h"
#include "core/sha256.h"
#include "core/threads/parallel.h"
#include "error_line.h"
#include "tasks/classification/calibration/fit_calibration.h"
#include "tasks/classification/ngram_mix/ngram_file.h"
#include "tasks/classification/ngram_mix/ngram_mix.h"
#include "tasks/classification/ngrams/training.h"

using namespace finetune;

namespace {

double drawn(uint32_t i) {
  return (double(philox({3, 4}, {i, 0, 0, 0})[0]) + 0.5) / 4294967296.0;
}

// Rows of three labels whose truth is drawn by softmax(weights.model * logits + weights.ngrams *
// margins).
HeldOutLogits drawn_rows(uint32_t rows, const MixWeights& weights) {
  HeldOutLogits held;
  held.outputs = 3;
  std::vector<double> probabilities;
  for (uint32_t i = 0; i < rows; ++i) {
    std::vector<float> logits, margins;
    for (uint32_t c = 0; c < 3; ++c) {
      logits.push_back(float(6 * drawn(10 * i + c) - 3));
      margins.push_back(float(3 * drawn(10 * i + 3 + c) - 2));
    }
    held.logits.insert(held.logits.end(), logits.begin(), logits.end());
    held.margins.insert(held.margins.end(), margins.begin(), margins.end());
    mix_logits(weights, margins, logits);
    probabilities_at(logits, false, 1, probabilities);
    const double at = drawn(10 * i + 7);
    const double two = probabilities[0] + probabilities[1];
    held.labels.push_back(at < probabilities[0] ? 0 : at < two ? 1 : 2);
    held.parts.push_back(uint8_t(i % kFitParts));
  }
  return held;
}

const std::vector<std::pair<const char*, int32_t>> kRowsOfText = {
    {"red apple pie", 0},    {"green apple tart", 0}, {"apple juice", 0},
    {"hammer and nails", 1}, {"steel hammer", 1},     {"claw hammer set", 1},
    {"flight to ottawa", 3}, {"night flight", 3},     {"flight home", 3}};

NgramModel trained() {
  TextRows rows;
  for (const auto& [text, label] : kRowsOfText) rows.add(text, {&label, 1});
  rows.flush();
  NgramTraining training;
  training.outputs = 4;
  return train_ngram_model(rows.descriptor(), training);
}

std::string with_right_sum(std::string file) {
  file.resize(file.size() - 64);
  return file + sha256_of(file);
}

std::string fault_of(const std::string& file) {
  const std::string fault =
      test::error_line(ExitCode::model, [&] { read_ngram_file(file, "a/ngrams.bin"); });
  CHECK((fault.empty() || fault.starts_with("a/ngrams.bin: ")));
  return fault;
}

}  // namespace

TEST_CASE("a mix's weights, by hand") {
  // The model is uninformative; of two labels the n-grams' one is right in three rows of four.
  HeldOutLogits held;
  held.outputs = 2;
  for (int row = 0; row < 400; ++row) {
    held.logits.insert(held.logits.end(), {0.5f, 0.5f});
    held.margins.insert(held.margins.end(), {1.0f, -1.0f});
    held.labels.push_back(row % 4 == 0);
  }
  // sigmoid(2 * weight) = 3/4
  const MixWeights found = best_mix(held, {});
  CHECK(found.ngrams == doctest::Approx(std::log(3.0) / 2).epsilon(1e-6));
  const double entropy = -0.75 * std::log(0.75) - 0.25 * std::log(0.25);
  CHECK(negative_log_likelihood(held, {}, found) == doctest::Approx(entropy).epsilon(1e-9));
}

TEST_CASE("a mix's weights have the highest likelihood, and their bounds") {
  const HeldOutLogits held = drawn_rows(3000, {0.6, 1.7});
  const MixWeights found = best_mix(held, {});
  CHECK(found.model == doctest::Approx(0.6).epsilon(0.1));
  CHECK(found.ngrams == doctest::Approx(1.7).epsilon(0.1));
  const double best = negative_log_likelihood(held, {}, found);
  for (const double model : {-1e-3, 0.0, 1e-3}) {
    for (const double ngrams : {-1e-3, 0.0, 1e-3}) {
      if (model == 0 && ngrams == 0) continue;
      CHECK(negative_log_likelihood(held, {}, {found.model + model, found.ngrams + ngrams}) > best);
    }
  }
  // N-grams that predict the opposite: the model's weight is that of its temperature alone.
  const HeldOutLogits against = drawn_rows(2000, {0.5, -1});
  const MixWeights alone = best_mix(against, {});
  CHECK(alone.ngrams == 0);
  CHECK(1 / alone.model == doctest::Approx(best_temperature(against, {})).epsilon(1e-6));
}

TEST_CASE("a mix has the same bits on any number of threads") {
  const HeldOutLogits held = drawn_rows(2000, {0.6, 1.7});
  const int before = threads();
  set_threads(1);
  const RowChoice rows{RowChoice::Of::others, 1};
  const MixWeights one = best_mix(held, rows);
  set_threads(3);
  CHECK(best_mix(held, rows) == one);
  set_threads(before);
}

TEST_CASE("calibration uses the mix if it is better on rows outside of its fit") {
  const CalibrationFit better = fit_calibration(drawn_rows(1000, {0.6, 1.7}), {}, false);
  REQUIRE(better.mix);
  CHECK(better.metrics.at("eval_mix_ngrams") == better.mix->ngrams);
  CHECK(better.metrics.at("eval_temperature") == better.calibration.temperature);
  const CalibrationFit worse = fit_calibration(drawn_rows(1000, {0.6, -1}), {}, false);
  CHECK(!worse.mix);
  CHECK(worse.report.line.starts_with("no mix with n-grams"));
  CHECK(worse.metrics.count("eval_mix_model") == 0);
  // A gain within its standard error does not count; with more rows the same n-grams are used.
  const CalibrationFit doubtful = fit_calibration(drawn_rows(300, {0.6, 0.2}), {}, false);
  CHECK(!doubtful.mix);
  CHECK(doubtful.report.line.starts_with("no mix with n-grams, which is not surely better; cali"));
  CHECK(doubtful.details.starts_with(
      "mix with n-grams: negative log likelihood 0.7734 -> 0.7667 on rows it was not fitted to; "));
  CHECK(fit_calibration(drawn_rows(20'000, {0.6, 0.2}), {}, false).mix);
}

TEST_CASE("rows are measured with a mix that was fitted to other rows") {
  HeldOutLogits held = drawn_rows(1000, {0.6, 1.7});
  const CalibrationFit before = fit_calibration(held, {}, false);
  REQUIRE(before.mix);
  CHECK(*before.mix == best_mix(held, {}));
  for (int64_t row = 0; row < held.rows(); ++row) {
    if (held.parts[size_t(row)] == 2 && row % 10 == 7)
      held.labels[size_t(row)] = (held.labels[size_t(row)] + 1) % 3;
  }
  const CalibrationFit after = fit_calibration(held, {}, false);
  REQUIRE(after.mix);
  for (size_t part = 0; part < kFitParts; ++part) {
    CHECK((after.part_mixes[part] == before.part_mixes[part]) == (part == 2));
  }
  CHECK(*after.mix != *before.mix);
}

TEST_CASE("a file of n-grams scores as the model that it is of") {
  NgramModel model = trained();
  StoredNgrams stored = read_ngram_file(ngram_file_of(model), "f");
  CHECK(stored.model.weights().features() == model.weights().features());
  std::vector<std::string> texts;
  for (const auto& sample : kRowsOfText) texts.emplace_back(sample.first);
  texts.insert(texts.end(), {"apple hammer flight", "nothing known: xyz", "", "apple juice"});
  NgramScorer scorer(std::move(stored.model));
  const std::vector<float> margins = scorer.margins_of(texts);
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto scores = model.score(texts[i]);
    for (size_t c = 0; c < 4; ++c) {
      const float margin = margins[i * 4 + c];
      if (c == 2) {  // no row has it
        CHECK(margin == -1);
      } else {
        CHECK(std::abs(double(margin) - scores[c]) < 2e-3);
      }
    }
  }
  for (size_t c = 0; c < 4; ++c) CHECK(margins[2 * 4 + c] == margins[12 * 4 + c]);
}

TEST_CASE("a file of n-grams is as small as is asked for") {
  const NgramModel model = trained();
  const size_t whole = ngram_file_of(model).size();
  size_t before = 0;
  for (const size_t most : {whole / 8, whole / 2, whole - 1}) {
    const std::string file = ngram_file_of(model, most);
    CHECK(file.size() <= most);
    CHECK(file.size() > before);
    before = file.size();
    const StoredNgrams stored = read_ngram_file(file, "f");
    for (int64_t i = 0; i < stored.model.weights().features(); ++i) {
      CHECK(!stored.model.weights().of(i).empty());
    }
  }
  CHECK(read_ngram_file(ngram_file_of(model, 0), "f").model.weights().features() == 0);
}

TEST_CASE("files of n-grams that lie are refused") {
  const std::string file = ngram_file_of(trained());
  for (size_t size = 0; size < file.size(); size += size < 200 ? 1 : 97) {
    CHECK(!fault_of(file.substr(0, size)).empty());
  }
  for (size_t at = 0; at < file.size(); at += 13) {
    std::string changed = file;
    changed[at] = char(changed[at] ^ 0x41);
    CHECK(!fault_of(changed).empty());
  }
  CHECK(fault_of(file).empty());
  // The same with a valid checksum: sizes, hashes, counts, outputs, values.
  const auto changed = [&](size_t at, auto value) {
    std::string out = file;
    std::memcpy(out.data() + at, &value, sizeof value);
    return fault_of(with_right_sum(out));
  };
  uint64_t ngrams = 0;
  std::memcpy(&ngrams, file.data() + 24, sizeof ngrams);
  const size_t hashes = 40 + 4 * 4, texts = hashes + 8 * ngrams, counts = texts + 4 * ngrams,
               outputs = counts + 2 * ngrams;
  CHECK(changed(8, uint32_t{4}).find("version 4") != std::string::npos);
  CHECK(changed(12, uint32_t{0}).find("do not have") != std::string::npos);
  CHECK(changed(24, UINT64_MAX).find("do not have") != std::string::npos);
  CHECK(changed(32, UINT64_MAX / 4).find("do not have") != std::string::npos);
  CHECK(changed(file.size() - 64 - 2, uint16_t{0x8000}).find("0 or no number") !=
        std::string::npos);
  CHECK(changed(40, NAN).find("bias") != std::string::npos);
  CHECK(changed(hashes, UINT64_MAX).find("out of order") != std::string::npos);
  CHECK(changed(texts, uint32_t{0}).find("texts") != std::string::npos);
  CHECK(changed(texts, uint32_t{10}).find("in 10 of 9 texts") != std::string::npos);
  CHECK(changed(counts, uint16_t{999}).find("weights") != std::string::npos);
  CHECK(changed(outputs, uint16_t{4}).find("output 4 of 4") != std::string::npos);
  CHECK(changed(file.size() - 64 - 2, uint16_t{0x7E00}).find("no number") != std::string::npos);
}

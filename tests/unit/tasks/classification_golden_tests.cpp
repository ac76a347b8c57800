// Classification on real data: the golden values of Hugging Face and the Toronto transactions.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "../shared.h"
#include "classification_fixture.h"
#include "core/files/files.h"
#include "data/packing.h"
#include "model/encoder.h"
#include "qa/golden.h"
#include "tasks/classification/classification_task.h"
#include "tasks/classification/evaluation/classification_evaluator.h"
#include "tasks/objective.h"

using namespace finetune;
using namespace finetune::test;

namespace {

std::vector<std::string> texts_of(const GoldenTensors& golden) {
  return JsonValue::parse(golden.metadata("texts")).as<std::vector<std::string>>().value();
}

EncoderConfig tiny_config() {
  auto path = shared_path("golden/tiny-bert-classification/config.json");
  return parse_config(read_text_file(path), path);
}

// Forward passes over all samples in micro-batches; logits (samples, outputs).
std::vector<float> compute_logits(Backend& backend, Encoder& encoder, float* weights,
                                  DeviceBatch& device, const SampleView& samples,
                                  int64_t most_tokens, int64_t most_sequences) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < samples.size(); ++i) lengths.push_back(samples.length(i));
  std::vector<float> logits;
  PackedBatch batch;
  for (IndexRange range : micro_batches(lengths, most_tokens)) {
    for (int64_t begin = range.begin; begin < range.end; begin += most_sequences) {
      std::vector<uint32_t> indices(size_t(std::min(most_sequences, range.end - begin)));
      std::iota(indices.begin(), indices.end(), uint32_t(begin));
      pack(samples, indices, {}, batch);
      device.upload(batch);
      const Tensor result = encoder.forward(device, weights, nullptr, false);
      REQUIRE(result.rows == int64_t(indices.size()));
      REQUIRE(result.contiguous());
      const size_t done = logits.size();
      logits.resize(done + size_t(result.size()));
      backend.download(logits.data() + done, result.data, size_t(result.size()) * sizeof(float));
    }
  }
  return logits;
}

// The golden texts as a file with their golden labels.
std::string golden_csv(const GoldenTensors& golden, const EncoderConfig& config) {
  const std::vector<std::string> texts = texts_of(golden);
  auto labels = golden.values<int64_t>("in.labels");
  std::string csv = "text,category\n";
  for (size_t i = 0; i < labels.size(); ++i) {
    append_csv_row(std::vector<std::string>{texts[i], config.labels[size_t(labels[i])]}, csv);
  }
  return csv;
}

TaskOptions category_options() {
  TaskOptions options;
  options.label_column = "category";
  return options;
}

}  // namespace

TEST_CASE("golden forward: loss of Hugging Face's logits") {
  if (!have_shared("golden/forward-classification.safetensors")) return;
  GoldenTensors golden(shared_path("golden/forward-classification.safetensors"));
  EncoderConfig config = tiny_config();
  TemporaryDirectory folder;
  TaskOptions options = category_options();
  options.train_files = {folder.write("golden.csv", golden_csv(golden, config))};
  options.eval_files = options.train_files;
  ClassificationTask task(options, WordTokenizer(), config, true);
  REQUIRE(task.keeps_head());

  std::vector<float> logits = golden.values<float>("logits");
  int64_t count = int64_t(logits.size()) / 24;
  std::vector<uint32_t> indices(static_cast<size_t>(count));
  std::iota(indices.begin(), indices.end(), 0u);
  auto backend = make_reference_backend();
  std::vector<float> losses(static_cast<size_t>(count));
  auto objective = make_objective(task.training_arrays());
  PackedBatch batch;
  pack(objective->samples(), indices, {}, batch);
  DeviceBatch device(*backend, batch.tokens(), count);
  device.upload(batch, 1 / float(count));
  objective->reserve(*backend, count);
  objective->upload_targets(*backend, batch);
  objective->loss(*backend, device, matrix(logits.data(), count, 24), vector(losses.data(), count),
                  Tensor{});
  double expected = golden.values<float>("loss")[0];
  double mean = std::accumulate(losses.begin(), losses.end(), 0.0) /
                objective->loss_denominator(batch.indices);
  CHECK(std::abs(mean - expected) < 1e-6);
  auto evaluation = task.start_evaluation();
  add_all(*evaluation, logits);
  CHECK(std::abs(evaluation->metrics()["eval_loss"] - expected) < 1e-6);
}

TEST_CASE("golden forward: text to logits") {
  if (!have_shared("golden/forward-classification.safetensors")) return;
  GoldenTensors golden(shared_path("golden/forward-classification.safetensors"));
  GoldenTensors file(shared_path("golden/tiny-bert-classification/model.safetensors"));
  auto tokenizer = Tokenizer::load(shared_path("golden/tiny-bert-classification"));
  EncoderConfig config = tiny_config();
  const std::vector<std::string> texts = texts_of(golden);
  std::string csv;
  append_csv_row(std::vector<std::string>{"text"}, csv);
  for (const std::string& text : texts) append_csv_row(std::vector<std::string>{text}, csv);
  TemporaryDirectory folder;
  PredictionRequest request;
  request.input = folder.write("golden.csv", csv).string();
  request.output = "-";
  const auto evaluator = ClassificationEvaluator::of_input(request, classification_defaults(config),
                                                           {*tokenizer, config, true});
  const auto chunk = evaluator->next();
  REQUIRE(chunk);

  auto ids = golden.values<int64_t>("in.input_ids");
  auto mask = golden.values<int64_t>("in.attention_mask");
  std::vector<int32_t> expected;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (mask[i]) expected.push_back(int32_t(ids[i]));
  }
  CHECK(std::ranges::equal(chunk->samples.ids, expected));

  auto backend = make_reference_backend();
  ParameterTable table(config, evaluator->head());
  std::vector<float> weights(size_t(table.size()));
  for (const Parameter& parameter : table.parameters()) {
    std::vector<float> tensor = file.values<float>(parameter.name);
    REQUIRE(int64_t(tensor.size()) == parameter.size());
    std::copy(tensor.begin(), tensor.end(), weights.begin() + parameter.offset);
  }
  Encoder encoder(*backend, config, table);
  std::vector<float> wanted = golden.values<float>("logits");
  // All at once, and in micro-batches of at most 20 tokens or 2 samples.
  for (auto [tokens, sequences] : {std::pair<int64_t, int64_t>{200, 7}, {20, 2}}) {
    encoder.reserve(tokens, sequences, false);
    DeviceBatch device(*backend, tokens, sequences);
    const std::vector<float> logits = compute_logits(*backend, encoder, weights.data(), device,
                                                     chunk->samples, tokens, sequences);
    REQUIRE(logits.size() == wanted.size());
    double worst = 0;
    for (size_t i = 0; i < logits.size(); ++i) {
      worst = std::max(worst, std::abs(double(logits[i]) - double(wanted[i])));
    }
    CHECK(worst < 1e-6);
  }
}

TEST_CASE("golden trajectory: the model's labels count") {
  if (!have_shared("golden/trajectory-classification-train.csv")) return;
  EncoderConfig config = tiny_config();
  TaskOptions options = category_options();
  options.train_files = {shared_path("golden/trajectory-classification-train.csv")};
  options.eval_files = {shared_path("golden/trajectory-classification-eval.csv")};
  WordTokenizer tokenizer;
  ClassificationTask task(options, tokenizer, config, true);
  CHECK(task.keeps_head());
  CHECK(task.head().outputs == 24);
  CHECK(task.data().labels.names() == config.labels);
  CHECK(task.train_set().samples.size() == 960);
  CHECK(task.eval_set()->samples.size() == 500);
  // First rows of the file: online services, hardware, online services, discount stores.
  std::vector<int32_t> first(task.data().train.labels.begin(),
                             task.data().train.labels.begin() + 4);
  CHECK(first == std::vector<int32_t>{11, 9, 11, 3});

  // Without the model's head 22 labels remain, and the evaluation data have an unknown one.
  TemporaryDirectory folder;
  Failure failure =
      failure_of(folder, [&] { ClassificationTask(options, tokenizer, config, false); });
  CHECK(failure.code == ExitCode::data);
  CHECK(failure.message.find("has 1 label that the training data lacks: 'Utilities'") !=
        std::string::npos);
  options.ignore_unknown_labels = true;
  ClassificationTask reinit(options, tokenizer, config, false);
  CHECK(reinit.head().outputs == 22);
  CHECK(!reinit.keeps_head());
}

TEST_CASE("a sample of Toronto transactions") {
  TaskOptions options = category_options();
  options.train_files = {source_path("data/samples/toronto-train.csv")};
  options.eval_files = {source_path("data/samples/toronto-dev.csv")};
  options.max_train_samples = 100;
  options.max_eval_samples = 50;
  WordTokenizer tokenizer;
  EncoderConfig config;
  ClassificationData easy = load_classification_data(options, tokenizer, config, false);
  CHECK(easy.labels.size() == 23);
  CHECK(easy.train.set.samples.size() == 100);
  CHECK(easy.class_name(easy.train.labels[0]) == "IT, telecom & online services");
  CHECK(easy.class_name(easy.train.labels[3]) == "Discount & department stores");
  REQUIRE(easy.eval.rows.size() == 50);
  CHECK(easy.eval.table->rows()[0].values[0] ==
        "DOLLAR TREE CANADA STO SPONGES, KRAFTY KIDS FOAM, WHITE TISSUE, STICKERS");

  options.label_column = "gl_category";
  options.ignore_unknown_labels = true;
  ClassificationData hard = load_classification_data(options, tokenizer, config, false);
  CHECK(hard.labels.size() == 218);
  CHECK(hard.class_name(hard.train.labels[0]) == "BOOK & MAGAZINE SUBSCRIPTIONS");
  CHECK(hard.train.set.samples.ids == easy.train.set.samples.ids);
}

TEST_CASE("all Toronto transactions") {
  if (!have_shared("data/toronto/train.csv")) return;
  TaskOptions options = category_options();
  options.train_files = {shared_path("data/toronto/train.csv")};
  options.eval_files = {shared_path("data/toronto/dev.csv")};
  options.max_train_samples = 100;
  options.max_eval_samples = 50;
  WordTokenizer tokenizer;
  EncoderConfig config;
  ClassificationData easy = load_classification_data(options, tokenizer, config, false);
  CHECK(easy.labels.size() == 24);
  CHECK(easy.train.set.samples.size() == 100);
  CHECK(easy.class_name(easy.train.labels[0]) == "IT, telecom & online services");
  CHECK(easy.class_name(easy.train.labels[3]) == "Discount & department stores");
  REQUIRE(easy.eval.rows.size() == 50);
  CHECK(easy.eval.table->rows()[0].values[2] ==
        "SPONGES, KRAFTY KIDS FOAM, WHITE TISSUE, STICKERS");

  options.label_column = "gl_category";
  options.text_columns = {"merchant", "memo"};
  ClassificationData hard = load_classification_data(options, tokenizer, config, false);
  CHECK(hard.labels.size() == 495);
  CHECK(hard.class_name(hard.train.labels[0]) == "BOOK & MAGAZINE SUBSCRIPTIONS");
  // merchant and memo joined are the column text.
  CHECK(hard.train.set.samples.ids == easy.train.set.samples.ids);
}

// The question-answering task: loss, evaluation whole and in pieces, held-out questions.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>

#include "core/error.h"
#include "data/packing.h"
#include "error_line.h"
#include "golden.h"
#include "tasks/objective.h"
#include "tasks/qa/evaluation/qa_evaluator.h"
#include "tasks/qa/qa_task.h"
#include "tasks/scores/squad_metrics.h"
#include "temporary_directory.h"

namespace finetune {
namespace {

using test::GoldenTensors;
using test::have_shared;
using test::read_json;
using test::shared_path;
using test::source_path;
using test::TemporaryDirectory;
namespace fs = std::filesystem;

TaskOptions golden_options() {
  TaskOptions options;
  options.train_files = {shared_path("golden/trajectory-qa-train.json")};
  return options;
}

std::unique_ptr<Tokenizer> tiny_tokenizer() {
  return Tokenizer::load(shared_path("golden/tiny-bert-qa"));
}

// The answer marked by peaks in the logits: arbitrary, but a function of the window alone.
std::vector<float> made_up_logits(const TokenizedSamples& samples, const PackedBatch& batch) {
  std::vector<float> logits;
  for (uint32_t w : batch.indices) {
    for (int64_t i = 0; i < samples.length(w); ++i) {
      int32_t id = samples.ids[size_t(samples.offsets[w] + i)];
      logits.push_back(float(std::sin(double(id) + double(i))) * 3);
      logits.push_back(float(std::cos(double(id) * 2 + double(i))) * 3);
    }
  }
  return logits;
}

// Chunk by chunk, some windows at a time. Returns the number of chunks.
int64_t add_all(Evaluator& evaluator, int64_t at_once) {
  int64_t chunks = 0;
  uint32_t before = 0;
  PackedBatch batch;
  while (const auto chunk = evaluator.next()) {
    TokenizedSamples samples;  // a copy: add() may end the chunk
    append(chunk->samples, samples);
    for (int64_t begin = 0; begin < samples.size(); begin += at_once) {
      std::vector<uint32_t> indices(size_t(std::min(at_once, samples.size() - begin)));
      std::iota(indices.begin(), indices.end(), uint32_t(begin));
      pack(samples, indices, {}, batch);
      const std::vector<float> logits = made_up_logits(samples, batch);
      for (uint32_t& index : batch.indices) index += before;
      evaluator.add(batch, logits.data());
    }
    before += uint32_t(samples.size());
    ++chunks;
  }
  CHECK(evaluator.share() == 1);
  return chunks;
}

// The windows of forward-qa.safetensors are four of the task's; the losses must agree.
TEST_CASE("the loss of golden logits is Hugging Face's") {
  if (!have_shared("golden/forward-qa.safetensors")) return;
  auto tokenizer = tiny_tokenizer();
  auto task = make_qa_task(golden_options(), *tokenizer, 512);
  const GoldenTensors golden(shared_path("golden/forward-qa.safetensors"));
  const auto ids = golden.values<int64_t>("in.input_ids");  // (4, 384)
  const auto types = golden.values<int64_t>("in.token_type_ids");
  const auto mask = golden.values<int64_t>("in.attention_mask");
  const auto start_logits = golden.values<float>("start_logits");
  const auto end_logits = golden.values<float>("end_logits");

  const TokenizedSamples& samples = task->train_set().samples;
  std::vector<uint32_t> indices;
  std::vector<float> host_logits;
  for (size_t row = 0; row < 4; ++row) {
    const size_t length = size_t(
        std::accumulate(mask.begin() + row * 384, mask.begin() + (row + 1) * 384, int64_t(0)));
    for (int64_t w = 0; w < samples.size(); ++w) {
      if (samples.length(w) == int64_t(length) &&
          std::equal(ids.begin() + row * 384, ids.begin() + row * 384 + length,
                     samples.ids.begin() + samples.offsets[size_t(w)])) {
        indices.push_back(uint32_t(w));
        CHECK(types[row * 384 + samples.second[size_t(w)] - 1] == 0);
        CHECK(types[row * 384 + samples.second[size_t(w)]] == 1);
        break;
      }
    }
    for (size_t i = row * 384; i < row * 384 + length; ++i) {
      host_logits.push_back(start_logits[i]);
      host_logits.push_back(end_logits[i]);
    }
  }
  REQUIRE(indices.size() == 4);
  auto objective = make_objective(task->training_arrays());
  CHECK(objective->loss_denominator(indices) == 4);

  auto backend = make_reference_backend();
  PackedBatch batch;
  pack(samples, indices, {}, batch);
  DeviceBatch device(*backend, batch.tokens(), batch.sequences());
  device.upload(batch, 0.25f);
  objective->reserve(*backend, 4);
  objective->upload_targets(*backend, batch);
  auto loss_memory = backend->allocate(4 * sizeof(float));
  Tensor losses = vector(static_cast<float*>(loss_memory.get()), 4);
  auto mean_loss = [&](Tensor logits) {
    objective->loss(*backend, device, logits, losses, logits);
    float host_losses[4];
    backend->download(host_losses, losses.data, sizeof host_losses);
    return std::accumulate(host_losses, host_losses + 4, 0.0) / 4;
  };
  const double expected = double(golden.values<float>("loss")[0]);
  auto memory = backend->allocate(host_logits.size() * sizeof(float));
  backend->upload(memory.get(), host_logits.data(), host_logits.size() * sizeof(float));
  CHECK(mean_loss(matrix(static_cast<float*>(memory.get()), batch.tokens(), 2)) ==
        doctest::Approx(expected).epsilon(1e-6));

  // The same from the text, through the model.
  const fs::path model = shared_path("golden/tiny-bert-qa");
  const EncoderConfig config =
      parse_config(MappedFile(model / "config.json").text(), model / "config.json");
  const ParameterTable table(config, task->head());
  const GoldenTensors weights(model / "model.safetensors");
  auto arena = backend->allocate(size_t(table.size()) * sizeof(float));
  for (const Parameter& parameter : table.parameters()) {
    const auto values = weights.values<float>(parameter.name);
    REQUIRE(int64_t(values.size()) == parameter.size());
    backend->upload(static_cast<float*>(arena.get()) + parameter.offset, values.data(),
                    values.size() * sizeof(float));
  }
  Encoder encoder(*backend, config, table);
  encoder.reserve(batch.tokens(), batch.sequences(), false);
  CHECK(mean_loss(encoder.forward(device, static_cast<float*>(arena.get()), nullptr, false)) ==
        doctest::Approx(expected).epsilon(1e-6));
}

TEST_CASE("evaluation gives scores and files that score to the same") {
  TemporaryDirectory scratch;
  auto tokenizer = tiny_tokenizer();
  TaskOptions options = golden_options();
  options.eval_files = {shared_path("golden/qa-postprocess/questions.json")};
  options.max_eval_samples = 150;
  auto task = make_qa_task(options, *tokenizer, 512);
  REQUIRE(task->eval_set() != nullptr);
  CHECK(task->eval_set()->examples == 150);
  auto evaluation = task->start_evaluation();
  CHECK(add_all(*evaluation, 7) == 1);
  const Metrics metrics = evaluation->metrics();
  CHECK(metrics.at("eval_total") == 150);
  CHECK(metrics.at("eval_loss") > 0);
  evaluation->write_files(scratch.path());

  const SquadData data = read_squad(options.eval_files, 150, false);
  const auto predictions = read_json(scratch / "predictions.json");
  CHECK(predictions.members().size() == 150);
  double exact = 0;
  std::vector<std::string> order;
  for (const SquadQuestion& question : data.questions) {
    order.push_back(question.id);
    const auto answer = predictions[question.id].as<std::string>().value();
    exact += score_answer(question.answers, answer, 2).exact;
  }
  CHECK(metrics.at("eval_exact_match") == 100.0 * exact / 150);
  // In the order of the data.
  const auto odds = read_json(scratch / "null_odds.json");
  std::vector<std::string> written;
  for (const auto& [id, value] : odds.members()) written.push_back(id);
  CHECK(written == order);
  CHECK(fs::exists(scratch / "nbest_predictions.json"));

  const auto config = JsonValue::parse(task->config_json());
  CHECK(config["finetune"]["squad_version"].as<int>() == 2);
  CHECK(config["finetune"]["max_length"].as<int>() == 384);
  CHECK(task->larger_is_better("eval_f1"));
  CHECK(!task->larger_is_better("eval_loss"));
}

TEST_CASE("prediction in pieces gives the answers of the whole, without references") {
  TemporaryDirectory scratch;
  auto tokenizer = tiny_tokenizer();
  // The first questions of the file, without their answers.
  JsonValue file = read_json(source_path("data/samples/squad-dev.json"));
  JsonValue article = file["data"].items()[0];
  JsonArray answered, open;
  for (size_t i = 0; i < 20; ++i) {
    JsonValue paragraph = article["paragraphs"].items()[i];
    answered.add(paragraph);
    JsonArray questions;
    for (JsonValue question : paragraph["qas"].items()) {
      question.erase("answers");
      questions.add(question);
    }
    paragraph.set("qas", questions);
    open.add(paragraph);
  }
  article.set("paragraphs", answered);
  file.set("data", JsonArray{article});
  std::ofstream(scratch / "references.json") << file.text();
  article.set("paragraphs", open);
  file.set("data", JsonArray{article});
  std::ofstream(scratch / "questions.json") << file.text();

  TaskOptions options;
  options.eval_files = {scratch / "references.json"};
  auto task = make_qa_task(options, *tokenizer, 512);
  auto whole = task->start_evaluation();
  add_all(*whole, 7);
  whole->write_files(scratch.path());

  options.eval_files = {scratch / "questions.json"};
  CHECK_THROWS_AS(make_qa_task(options, *tokenizer, 512), Error);
  options.squad_version = 1;
  QaEvaluator pieces(options, *tokenizer, 512, false, 17);
  fs::create_directories(scratch / "pieces");
  pieces.open_outputs(files_in(scratch / "pieces"));
  const int64_t chunks = add_all(pieces, 1);
  CHECK(chunks == (pieces.rows() + 16) / 17);
  CHECK(pieces.metrics().empty());
  pieces.commit_outputs();
  CHECK(MappedFile(scratch / "pieces/predictions.json").text() ==
        MappedFile(scratch / "predictions.json").text());
}

TEST_CASE("evaluation in pieces gives the scores and files of the whole") {
  auto tokenizer = tiny_tokenizer();
  for (int version : {1, 2}) {
    CAPTURE(version);
    TemporaryDirectory scratch;
    TaskOptions options;
    options.eval_files = {shared_path("golden/qa-postprocess/questions.json")};
    options.max_eval_samples = 150;
    options.squad_version = version;
    options.max_length = 96;  // several windows per question
    options.doc_stride = 32;
    auto task = make_qa_task(options, *tokenizer, 512);
    auto whole = task->start_evaluation();
    add_all(*whole, 7);
    fs::create_directories(scratch / "whole");
    whole->write_files(scratch / "whole");

    QaEvaluator pieces(options, *tokenizer, 512, true, 17);
    fs::create_directories(scratch / "pieces");
    pieces.open_outputs(files_in(scratch / "pieces"));
    CHECK(add_all(pieces, 1) == 9);
    CHECK(pieces.metrics() == whole->metrics());
    pieces.commit_outputs();
    pieces.write_files(scratch / "pieces");
    int files = 0;
    for (const auto& entry : fs::directory_iterator(scratch / "whole")) {
      ++files;
      CHECK(MappedFile(entry.path()).text() ==
            MappedFile(scratch / "pieces" / entry.path().filename()).text());
    }
    CHECK(files == version + 1);
    std::vector<std::string> lines = pieces.describe();
    for (auto& line : pieces.describe_samples()) lines.push_back(line);
    CHECK(lines == task->describe());
  }
}

TEST_CASE("logits that are not finite end the evaluation") {
  if (!have_shared("golden/trajectory-qa-train.json")) return;
  auto tokenizer = tiny_tokenizer();
  TaskOptions options;
  options.eval_files = golden_options().train_files;
  options.max_eval_samples = 3;
  auto task = make_qa_task(options, *tokenizer, 512);
  auto evaluation = task->start_evaluation();
  PackedBatch batch;
  std::vector<uint32_t> indices = {0};
  pack(task->eval_set()->samples, indices, {}, batch);
  std::vector<float> logits(size_t(2 * batch.tokens()), 1.0f);
  logits.back() = NAN;
  CHECK(test::error_line(ExitCode::diverged, [&] { evaluation->add(batch, logits.data()); }) != "");
}

TEST_CASE("a task whose training arrays were copied and released keeps its counts") {
  if (!have_shared("golden/trajectory-qa-train.json")) return;
  auto tokenizer = tiny_tokenizer();
  auto task = make_qa_task(golden_options(), *tokenizer, 512);
  const TrainingArrays arrays = task->training_arrays();
  CHECK(arrays.samples.size() == task->train_set().samples.size());
  CHECK(int64_t(arrays.labels.size()) == arrays.samples.size());
  CHECK(int64_t(arrays.ends.size()) == arrays.samples.size());
  const auto lines = task->describe();
  const int64_t examples = task->train_set().examples;
  CHECK(examples > 0);
  task->release_training_arrays();
  CHECK(task->training_arrays().samples.size() == 0);
  CHECK(task->training_arrays().ends.empty());
  CHECK(task->train_set().examples == examples);
  CHECK(task->describe() == lines);
}

TEST_CASE("held-out contexts are never trained on") {
  if (!have_shared("golden/trajectory-qa-train.json")) return;
  auto tokenizer = tiny_tokenizer();
  TaskOptions options = golden_options();
  auto all = make_qa_task(options, *tokenizer, 512);
  CHECK(all->eval_set() == nullptr);
  options.eval_fraction = 0.25;
  auto task = make_qa_task(options, *tokenizer, 512);
  REQUIRE(task->eval_set() != nullptr);
  CHECK(task->eval_set()->examples > 0);
  CHECK(task->train_set().examples + task->eval_set()->examples == all->train_set().examples);
  CHECK(task->train_set().samples.size() + task->eval_set()->samples.size() ==
        all->train_set().samples.size());
  options.max_train_samples = 5;
  options.max_eval_samples = 2;
  task = make_qa_task(options, *tokenizer, 512);
  CHECK(task->train_set().examples == 5);
  CHECK(task->eval_set()->examples == 2);
}

TEST_CASE("options that a model or each other forbid") {
  if (!have_shared("golden/trajectory-qa-train.json")) return;
  auto tokenizer = tiny_tokenizer();
  auto refuses = [&](auto change) {
    TaskOptions options = golden_options();
    change(options);
    return test::error_line(ExitCode::usage, [&] { make_qa_task(options, *tokenizer, 512); }) != "";
  };
  CHECK(refuses([](TaskOptions& o) { o.max_length = 513; }));
  CHECK(refuses([](TaskOptions& o) { o.max_length = 8; }));
  CHECK(refuses([](TaskOptions& o) { o.doc_stride = -1; }));
  CHECK(refuses([](TaskOptions& o) { o.n_best = 0; }));
  CHECK(refuses([](TaskOptions& o) { o.max_answer_length = 0; }));
  CHECK(!refuses([](TaskOptions& o) { o.max_length = 64; }));  // the overlap is reduced and said so
}

}  // namespace
TEST_CASE("options that a model keeps are checked as part of it") {
  EncoderConfig config;
  config.source_json =
      R"({"finetune": {"max_length": 384, "doc_stride": 64, "n_best": 7, "max_answer_length": 9,
          "null_threshold": -1.5, "squad_version": 2}})";
  const TaskOptions options = qa_defaults(config);
  CHECK(options.max_length == 384);
  CHECK(options.n_best == 7);
  CHECK(options.null_threshold == -1.5);
  for (const char* stored :
       {R"("max_length": 513)", R"("doc_stride": -1)", R"("n_best": 0)", R"("n_best": 1e300)",
        R"("max_answer_length": -9223372036854775808)", R"("squad_version": 3)"}) {
    config.source_json = concat(R"({"finetune": {)", stored, "}}");
    CAPTURE(stored);
    CHECK(test::error_line(ExitCode::model, [&] { qa_defaults(config); }) != "");
  }
}

}  // namespace finetune

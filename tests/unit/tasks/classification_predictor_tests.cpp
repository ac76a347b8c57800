// Predictions of classification: columns, formats, chunks.
#include <doctest/doctest.h>

#include "../written_output.h"
#include "classification_fixture.h"
#include "data/columns/row_chunk.h"
#include "tasks/classification/classification_task.h"
#include "tasks/classification/evaluation/classification_evaluator.h"

using namespace finetune;
using namespace finetune::test;

namespace {

EncoderConfig model(std::vector<std::string> labels, std::string problem = "") {
  EncoderConfig config;
  config.labels = std::move(labels);
  config.problem_type = std::move(problem);
  config.source_json = "{}";
  return config;
}

// softmax: .5 .25 .125 .125, up to rounding
const std::vector<float> kSomeLogits{0.6931472f, 0, -0.6931472f, -0.6931472f};

std::string predict(const std::filesystem::path& file, const EncoderConfig& config,
                    const std::vector<float>& logits, int64_t top_k = 1, bool all = false,
                    const TaskOptions* options = nullptr) {
  PredictionRequest request;
  request.input = file.string();
  request.output = "-";
  request.top_k = top_k;
  request.all_probabilities = all;
  const auto evaluator = ClassificationEvaluator::of_input(
      request, options ? *options : classification_defaults(config), {kTokenizer, config, true});
  std::string out;
  evaluator->open_outputs([&](const std::string& path) {
    CHECK(path == "-");
    return std::make_unique<test::WrittenOutput>(out);
  });
  CHECK(evaluator->answers_each_chunk());
  uint32_t row = 0;
  while (const auto chunk = evaluator->next()) {
    const size_t before = out.size();
    for (int64_t left = chunk->samples.size(); left > 0; --left) {
      CHECK(out.size() == before);  // a chunk is written as a whole
      evaluator->add(batch_of({row++}), logits.data());
    }
    CHECK(out.size() > before);
  }
  CHECK(evaluator->rows() == row);
  CHECK(evaluator->metrics().empty());
  evaluator->commit_outputs();
  return out;
}

}  // namespace

TEST_CASE("predictions follow the input's columns") {
  TemporaryDirectory folder;
  EncoderConfig config = model({"a", "b, b", "c", "d"});
  auto file = folder.write("in.csv", "text,n\n\"x, y\",1\n\"say \"\"hi\"\"\",2\n");
  CHECK(predict(file, config, kSomeLogits) ==
        "text,n,label,probability\n\"x, y\",1,a,0.5\n\"say \"\"hi\"\"\",2,a,0.5\n");
  CHECK(predict(file, config, kSomeLogits, 2) ==
        "text,n,label,probability,label_2,probability_2\n"
        "\"x, y\",1,a,0.5,\"b, b\",0.25\n\"say \"\"hi\"\"\",2,a,0.5,\"b, b\",0.25\n");
  CHECK(predict(file, config, {0, 0, 0, 0}, 1, true) ==
        "text,n,label,probability,probability:a,\"probability:b, b\",probability:c,probability:d\n"
        "\"x, y\",1,a,0.25,0.25,0.25,0.25,0.25\n"
        "\"say \"\"hi\"\"\",2,a,0.25,0.25,0.25,0.25,0.25\n");
}

TEST_CASE("columns that the input has already are renamed") {
  PredictionFormat format{ProblemType::single_label, {"a", "b"}};
  CHECK(prediction_columns(format, {"text", "label"}) ==
        std::vector<std::string>{"predicted_label", "probability"});
  CHECK(prediction_columns(format, {"probability"}) ==
        std::vector<std::string>{"label", "predicted_probability"});
  CHECK(prediction_columns(format, {"label", "predicted_label"}) ==
        std::vector<std::string>{"predicted_label_", "probability"});
}

TEST_CASE("plain text: one text per line, empty ones too") {
  TemporaryDirectory folder;
  EncoderConfig config = model({"a", "b", "c", "d"});
  TaskOptions options = classification_defaults(config);
  options.text_columns = {"merchant", "memo"};  // of the training run
  CHECK(predict(folder.write("in.txt", "x, y\n\nz\n"), config, kSomeLogits, 1, false, &options) ==
        "text,label,probability\n\"x, y\",a,0.5\n,a,0.5\nz,a,0.5\n");
}

TEST_CASE("predictions of multi-label and regression models") {
  TemporaryDirectory folder;
  auto file = folder.write("in.csv", "text\nx\n");
  EncoderConfig multi = model({"a", "b", "c"}, "multi_label_classification");
  CHECK(predict(file, multi, {0, 1.5f, 3}) ==
        "text,label,probability\nx,b|c,0.8175745|0.95257413\n");
  CHECK(predict(file, multi, {-1, -1, -1}) == "text,label,probability\nx,,\n");
  CHECK(predict(file, multi, {0, 0, 3}, 1, true) ==
        "text,label,probability,probability:a,probability:b,probability:c\n"
        "x,c,0.95257413,0.5,0.5,0.95257413\n");
  EncoderConfig regression = model({"LABEL_0"}, "regression");
  CHECK(predict(file, regression, {0.1f}) == "text,label\nx,0.1\n");
}

TEST_CASE("impossible options and inputs of predict") {
  TemporaryDirectory folder;
  auto file = folder.write("in.csv", "title,memo\nx,y\n");
  auto message = [&](const EncoderConfig& config, int64_t top_k, bool all, ExitCode code) {
    Failure failure = failure_of(folder, [&] { predict(file, config, kSomeLogits, top_k, all); });
    CHECK(failure.code == code);
    return failure.message;
  };
  CHECK(message(model({"a", "b"}), 3, false, ExitCode::usage) ==
        "--top-k 3 is not in 1 to 2, the model's labels");
  CHECK(message(model({"a"}, "regression"), 1, true, ExitCode::usage) ==
        "--top-k and --all-probabilities do not go with a regression model");
  CHECK(message(model({"a", "b"}, "multi_label_classification"), 2, false, ExitCode::usage) ==
        "--top-k does not go with a multi-label model (--all-probabilities does)");
  CHECK(message(model({}), 1, false, ExitCode::model) ==
        "the model has no trained classification head; train one first");
  CHECK(message(model({"a", "b", "c", "d"}), 1, false, ExitCode::data) ==
        "in.csv: no column 'text' (there are 'title', 'memo'; choose one with --text-column)");
}

TEST_CASE("chunks hold rows in order, bounded by count and by bytes") {
  TemporaryDirectory folder;
  std::string text = "text,n\n";
  for (int i = 0; i < 10; ++i) text += concat("word", i, ",", i, "\n");
  auto file = folder.write("in.csv", text);
  auto sizes = [&](int64_t rows, size_t bytes) {
    RowReader reader(file);
    RowChunk chunk;
    std::vector<size_t> out;
    int next = 0;
    while (chunk.read(reader, rows, bytes)) {
      out.push_back(chunk.rows().size());
      for (RowValues row : chunk.rows()) {
        REQUIRE(row.size() == 2);
        CHECK(row[0] == concat("word", next));
        CHECK(row[1] == concat(next));
        ++next;
      }
    }
    CHECK(next == 10);
    return out;
  };
  CHECK(sizes(4, 1000) == std::vector<size_t>{4, 4, 2});
  CHECK(sizes(100, 12) == std::vector<size_t>{2, 2, 2, 2, 2});  // six bytes a row
}

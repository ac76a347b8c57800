// Losses, gradients and probabilities of classification against torch 2 in double.
// (CrossEntropyLoss(label_smoothing, reduction="none") times the labels' weights,
// BCEWithLogitsLoss, MSELoss, softmax, sigmoid.)
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "classification_fixture.h"
#include "data/packing.h"
#include "tasks/classification/classification_task.h"
#include "tasks/classification/evaluation/classification_evaluator.h"
#include "tasks/objective.h"

using namespace finetune;
using namespace finetune::test;

namespace {

const std::vector<float> kLogits{1, -.5f, .25f, 2, 0, -1, -.75f, .5f, 3, 0, 0, 1.5f};  // (4, 3)

bool near(double a, double b, double tolerance = 1e-6) {
  return std::abs(a - b) <= tolerance;
}

struct LossResult {
  double mean = 0;  // sum of the losses / denominator
  std::vector<float> dlogits;
};

// The task's loss of samples 0..3 in one batch, as in the trainer.
LossResult loss_of(const ClassificationTask& task, const std::vector<float>& logits) {
  auto backend = make_reference_backend();
  auto objective = make_objective(task.training_arrays());
  PackedBatch batch;
  pack(objective->samples(), std::vector<uint32_t>{0, 1, 2, 3}, {}, batch);
  double denominator = objective->loss_denominator(batch.indices);
  DeviceBatch device(*backend, batch.tokens(), 4);
  device.upload(batch, float(1 / denominator));
  std::vector<float> losses(4);
  LossResult result;
  result.dlogits.resize(logits.size());
  int64_t outputs = task.head().outputs;
  objective->reserve(*backend, 4);
  objective->upload_targets(*backend, batch);
  objective->loss(*backend, device, matrix(logits.data(), 4, outputs), vector(losses.data(), 4),
                  matrix(result.dlogits.data(), 4, outputs));
  result.mean = std::accumulate(losses.begin(), losses.end(), 0.0) / denominator;
  return result;
}

Metrics evaluate(ClassificationTask& task, const std::vector<float>& logits) {
  auto evaluation = task.start_evaluation();
  CHECK(add_all(*evaluation, logits) == 1);  // in two batches
  return evaluation->metrics();
}

}  // namespace

TEST_CASE("class weights and label smoothing give the documented losses") {
  TemporaryDirectory folder;
  TaskOptions options;
  options.train_files = {folder.write("t.csv", "text,label\nr,a\ns,b\nt,c\nu,a\n")};
  options.eval_files = options.train_files;
  struct Case {
    bool weights;
    double smoothing, loss;
    std::vector<double> gradient;  // of the second sample's logits
  };
  for (const Case& c : {
           Case{false, 0, 1.1667983887963609, {0.210948683620, -0.221451200154, 0.010502516534}},
           Case{false, .1, 1.2167983887963612, {0.202615350287, -0.204784533487, 0.002169183200}},
           Case{true, 0, 1.1562383718523772, {0.281264911494, -0.295268266872, 0.014003355378}},
           Case{true, .1, 1.2187383718523772, {0.270153800383, -0.273046044650, 0.002892244267}},
       }) {
    options.balanced_class_weights = c.weights;
    options.label_smoothing = c.smoothing;
    ClassificationTask task(options, kTokenizer, EncoderConfig{}, false);
    LossResult result = loss_of(task, kLogits);
    CHECK(near(result.mean, c.loss));
    for (size_t i = 0; i < 3; ++i) CHECK(near(result.dlogits[3 + i], c.gradient[i]));
    // Evaluation reports the same loss.
    CHECK(near(evaluate(task, kLogits)["eval_loss"], c.loss));
  }
  ClassificationTask task(options, kTokenizer, EncoderConfig{}, false);
  REQUIRE(task.class_weights().size() == 3);
  CHECK(near(task.class_weights()[0], 4.0 / 6));  // N / (C * n_c)
  CHECK(near(task.class_weights()[1], 4.0 / 3));
  auto objective = make_objective(task.training_arrays());
  CHECK(near(objective->loss_denominator(std::vector<uint32_t>{1, 3}), 2));
}

TEST_CASE("classes without a training sample weigh 1") {
  TemporaryDirectory folder;
  TaskOptions options;
  options.train_files = {folder.write("t.csv", "text,label\nr,a\ns,b\nt,b\nu,b\n")};
  options.balanced_class_weights = true;
  EncoderConfig config;
  config.labels = {"a", "b", "c"};
  ClassificationTask task(options, kTokenizer, config, true);
  REQUIRE(task.class_weights().size() == 3);
  CHECK(near(task.class_weights()[0], 2));
  CHECK(near(task.class_weights()[1], 4.0 / 6));
  CHECK(task.class_weights()[2] == 1);
}

TEST_CASE("a task whose training arrays were copied and released still evaluates") {
  TemporaryDirectory folder;
  TaskOptions options;
  options.train_files = {folder.write("t.csv", "text,label\nr,1\ns,2\nt,.1\nu,1\n")};
  options.eval_files = options.train_files;
  for (int form : {0, 1, 2}) {
    options.regression = form == 1;
    options.multi_label_separator = form == 2 ? ";" : "";
    options.balanced_class_weights = form == 0;
    ClassificationTask task(options, kTokenizer, EncoderConfig{}, false);
    const TrainingArrays arrays = task.training_arrays();
    CHECK(arrays.labels.size() == (form == 0 ? 4 : 0));
    CHECK(arrays.class_weights.size() == (form == 0 ? 3 : 0));
    CHECK(arrays.targets.size() == (form == 1 ? 4 : 0));
    CHECK(arrays.set_offsets.size() == (form == 2 ? 5 : 0));
    if (form == 1) {  // the mean is 1.025, the deviation 0.67
      CHECK(arrays.target_scale.scale == 0.5);
      CHECK(arrays.targets[2] == doctest::Approx((0.1 - 1.025) / 0.5));
    }
    std::vector<std::string> lines = task.describe();
    std::vector<float> logits(kLogits.begin(), kLogits.begin() + 4 * task.head().outputs);
    Metrics metrics = evaluate(task, logits);

    task.release_training_arrays();
    CHECK(task.train_set().samples.size() == 0);
    CHECK(task.train_set().examples == 4);
    CHECK(task.describe() == lines);
    CHECK(evaluate(task, logits) == metrics);
  }
}

TEST_CASE("multi-label: binary cross-entropy, metrics and files") {
  TemporaryDirectory folder;
  TaskOptions options;
  options.train_files = {folder.write("t.csv", "text,label\nr,a;c\ns,\nt,b;c\nu,a\n")};
  options.eval_files = options.train_files;
  options.multi_label_separator = ";";
  ClassificationTask task(options, kTokenizer, EncoderConfig{}, false);
  LossResult result = loss_of(task, kLogits);
  CHECK(near(result.mean, 0.7078214959724756));
  CHECK(near(result.dlogits[3], 0.07339975649815686));
  CHECK(near(result.dlogits[4], 0.041666666666666664));
  CHECK(near(result.dlogits[5], 0.02241178511416626));

  // Positive logits: {a,c} {a} {b,c} {c}; truth {a,c} {} {b,c} {a}. TP 4, FP 2, FN 1: micro F1
  // 8/11; a: 2/4, b: 1, c: 4/5: macro 23/30; weighted (2*.5 + 1 + 2*.8)/5 = .72.
  Metrics metrics = evaluate(task, kLogits);
  CHECK(near(metrics["eval_loss"], 0.7078214959724756));
  CHECK(near(metrics["eval_accuracy"], 0.5));
  CHECK(near(metrics["eval_f1_micro"], 8.0 / 11));
  CHECK(near(metrics["eval_f1_macro"], 23.0 / 30));
  CHECK(near(metrics["eval_f1_weighted"], 0.72));
  CHECK(task.best_metric() == "eval_f1_micro");

  auto evaluation = task.start_evaluation();
  add_all(*evaluation, kLogits);
  evaluation->write_files(folder.path());
  CHECK(folder.read("predictions.csv") ==
        "text,label,predicted_label,probability\n"
        "r,a;c,a;c,0.7310586;0.5621765\n"
        "s,,a,0.8807971\n"
        "t,b;c,b;c,0.62245935;0.95257413\n"
        "u,a,c,0.8175745\n");
  CHECK(folder.read("confusion.csv") ==
        "label,true_positives,false_positives,false_negatives,true_negatives\n"
        "a,1,1,1,1\nb,1,0,0,3\nc,2,1,0,1\n");
}

TEST_CASE("regression: squared error, metrics and files") {
  TemporaryDirectory folder;
  TaskOptions options;
  options.train_files = {folder.write("t.csv", "text,label\nr,.5\ns,.5\nt,1\nu,-2\n")};
  options.eval_files = options.train_files;
  options.regression = true;
  ClassificationTask task(options, kTokenizer, EncoderConfig{}, false);
  std::vector<float> values{1, -.5f, .25f, 3};
  LossResult result = loss_of(task, values);
  CHECK(near(result.mean, 6.703125));
  std::vector<double> gradient{0.25, -0.5, -0.375, 2.5};
  for (size_t i = 0; i < 4; ++i) CHECK(near(result.dlogits[i], gradient[i]));
  Metrics metrics = evaluate(task, values);
  CHECK(near(metrics["eval_loss"], 6.703125));
  CHECK(near(metrics["eval_mse"], 6.703125));
  CHECK(near(metrics["eval_mae"], (0.5 + 1 + 0.75 + 5) / 4));
  CHECK(task.best_metric() == "eval_mse");
  CHECK(!task.larger_is_better("eval_mse"));
  CHECK(!task.larger_is_better("eval_loss"));
  CHECK(task.larger_is_better("eval_pearson"));

  auto evaluation = task.start_evaluation();
  add_all(*evaluation, values);
  evaluation->write_files(folder.path());
  CHECK(folder.read("predictions.csv") ==
        "text,label,predicted_label\nr,.5,1\ns,.5,-0.5\nt,1,0.25\nu,-2,3\n");
  CHECK(!std::filesystem::exists(folder / "confusion.csv"));
}

TEST_CASE("single-label: metrics and files, unknown labels counted as wrong") {
  TemporaryDirectory folder;
  TaskOptions options;
  options.train_files = {folder.write("t.csv", "text,kind\nr,a\ns,\"b, b\"\nt,c\n")};
  options.eval_files = {folder.write("e.csv", "kind,text\na,r\nz,s\nc,\"a \"\"t\"\"\"\na,u\n")};
  options.label_column = "kind";
  options.ignore_unknown_labels = true;
  ClassificationTask task(options, kTokenizer, EncoderConfig{}, false);
  // Predicted: a, a, c, c against a, z, c, a.
  Metrics metrics = evaluate(task, kLogits);
  CHECK(metrics["eval_accuracy"] == 0.5);
  // F1 of a 1/2, c 2/3, z 0; "b, b" occurs nowhere.
  CHECK(near(metrics["eval_f1_macro"], (0.5 + 2.0 / 3) / 3));
  CHECK(near(metrics["eval_f1_weighted"], (2 * 0.5 + 2.0 / 3) / 4));
  // Mean over the three samples that have a loss: softmax of a, c and a.
  double a = 1 / (1 + std::exp(-1.5) + std::exp(-0.75));
  double c = 1 / (1 + std::exp(-3.75) + std::exp(-2.5));
  double last = 1 / (2 + std::exp(1.5));
  CHECK(near(metrics["eval_loss"], -(std::log(a) + std::log(c) + std::log(last)) / 3));
  for (const std::string& name : task.metric_names()) CHECK(metrics.count(name) == 1);
  CHECK(metrics.size() == task.metric_names().size());

  auto evaluation = task.start_evaluation();
  add_all(*evaluation, kLogits);
  evaluation->write_files(folder.path());
  CHECK(folder.read("predictions.csv") ==
        "kind,text,label,probability\n"
        "a,r,a,0.5897977\n"
        "z,s,a,0.84379476\n"
        "c,\"a \"\"t\"\"\",c,0.90448403\n"
        "a,u,c,0.69143844\n");
  CHECK(folder.read("confusion.csv") ==
        "true_label,a,\"b, b\",c,z\na,1,0,1,0\n\"b, b\",0,0,0,0\nc,0,0,1,0\nz,1,0,0,0\n");
  CHECK(folder.read("per_class.csv") ==
        "label,precision,recall,f1,support\na,0.5,0.5,0.5,2\n\"b, b\",0,0,0,0\n"
        "c,0.5,1,0.6666666666666666,1\nz,0,0,0,1\n");
  CHECK(task.describe() ==
        std::vector<std::string>{
            "train: 3 rows, 9 tokens (3.0 a row), 0 cut at 128 tokens (0.0 %)",
            "eval: 4 rows, 13 tokens (3.2 a row), 0 cut at 128 tokens (0.0 %)", "3 labels",
            "eval: 1 of 4 rows has a label unknown to the model (1 distinct); it counts as wrong"});
}

namespace {

// Evaluation of a finished model on options.eval_files: from memory, and row by row as files come.
struct BothWays {
  BothWays(const TaskOptions& options, const EncoderConfig& config,
           const std::vector<float>& logits, const TemporaryDirectory& folder) {
    ClassificationTask task(options, kTokenizer, config, true);
    auto memory = task.start_evaluation();
    add_all(*memory, logits);
    std::filesystem::create_directories(folder / "memory");
    memory->write_files(folder / "memory");
    lines_of_task = task.describe();

    auto files = ClassificationEvaluator::of_files(options, {kTokenizer, config, true});
    std::filesystem::create_directories(folder / "files");
    files->open_outputs(files_in(folder / "files"));
    const size_t outputs = size_t(task.head().outputs);
    CHECK(files->head().outputs == task.head().outputs);
    const auto chunk = files->next();
    REQUIRE(chunk);
    CHECK(std::ranges::equal(chunk->samples.ids, task.eval_set()->samples.ids));
    CHECK(!files->next());
    CHECK(files->share() == 1);
    for (uint32_t i = 0; i < logits.size() / outputs; ++i) {
      files->add(batch_of({i}), logits.data() + i * outputs);
      CHECK(files->rows() == i + 1);
    }
    CHECK(files->metrics() == memory->metrics());
    files->commit_outputs();
    files->write_files(folder / "files");
    for (const char* name : {"predictions.csv", "confusion.csv", "per_class.csv"}) {
      CHECK(folder.read(concat("memory/", name)) == folder.read(concat("files/", name)));
    }
    lines = files->describe();
    for (auto& line : files->describe_samples()) lines.push_back(line);
  }
  std::vector<std::string> lines_of_task, lines;
};

}  // namespace

TEST_CASE("evaluation of files gives the metrics and files of evaluation in memory") {
  TemporaryDirectory folder;
  EncoderConfig config;
  config.labels = {"a", "b, b", "c"};
  config.problem_type = "single_label_classification";
  config.source_json = R"({"finetune":{"label_smoothing":0.1,"class_weights":[2.0,1.0,0.5]}})";
  TaskOptions options = classification_defaults(config);
  options.eval_files = {folder.write("e.csv", "label,text\na,r\nz,s\nc\n,x\nc,\"a \"\"t\"\"\"\n"),
                        folder.write("f.csv", "label,text\na,u\nb,\n")};
  options.ignore_unknown_labels = true;
  options.rows.skip_bad_rows = true;
  BothWays both(options, config, kLogits, folder);
  CHECK(both.lines ==
        std::vector<std::string>{
            "eval: 4 rows, 3 unusable rows dropped", "3 labels",
            "eval: 1 of 4 rows has a label unknown to the model (1 distinct); it counts as wrong",
            "eval: 13 tokens (3.2 a row), 0 cut at 128 tokens (0.0 %)"});

  options = {};
  config.source_json = "{}";
  options.multi_label_separator = ";";
  config.problem_type = "multi_label_classification";
  options.ignore_unknown_labels = true;
  options.eval_files = {folder.write("m.csv", "text,label\nr,a;c\ns,\nt,c;z;b\nu,a;a\n")};
  BothWays multi(options, config, kLogits, folder);

  options = {};
  options.regression = true;
  config.labels = {"LABEL_0"};
  config.problem_type = "regression";
  options.eval_files = {folder.write("n.csv", "text,label\nr,.5\ns,.5\nt,1\nu,-2\n")};
  BothWays regression(options, config, {1, -.5f, .25f, 3}, folder);
  options.max_eval_samples = 3;
  BothWays first(options, config, {1, -.5f, .25f}, folder);
  CHECK(first.lines[0] == "eval: 3 rows");
}

TEST_CASE("config.json takes the options to evaluate and predict") {
  TemporaryDirectory folder;
  TaskOptions options;
  options.train_files = {folder.write("t.csv", "merchant,memo,kind\nr,m,b\ns,,a\n")};
  options.text_columns = {"merchant", "memo"};
  options.label_column = "kind";
  options.balanced_class_weights = true;
  options.label_smoothing = 0.1;
  options.max_length = 64;
  ClassificationTask task(options, kTokenizer, EncoderConfig{}, false);
  CHECK(task.config_json() ==
        R"({"id2label":{"0":"a","1":"b"},"label2id":{"a":0,"b":1},)"
        R"("problem_type":"single_label_classification","finetune":{"task":"classification",)"
        R"("text_column":["merchant","memo"],"label_column":"kind","max_length":64,)"
        R"("label_smoothing":0.1,"class_weights":[1.0,1.0]}})");

  EncoderConfig config;
  config.source_json = task.config_json();
  config.labels = {"a", "b"};
  config.problem_type = "single_label_classification";
  TaskOptions stored = classification_defaults(config);
  CHECK(stored.text_columns == options.text_columns);
  CHECK(stored.label_column == "kind");
  CHECK(stored.max_length == 64);
  CHECK(stored.label_smoothing == 0.1);
  CHECK(problem_type(stored) == ProblemType::single_label);
  stored.eval_files = options.train_files;
  ClassificationTask evaluation(stored, kTokenizer, config, true);
  CHECK(evaluation.class_weights().size() == 2);
  CHECK(evaluation.keeps_head());

  config.source_json = R"({"finetune": {"max_length": "long"}})";
  Failure failure = failure_of(folder, [&] { classification_defaults(config); });
  CHECK(failure.code == ExitCode::model);
  CHECK(failure.message == "config.json: finetune.max_length has an unexpected type");
  for (const char* length : {"-1", "2", "513", "1e300", "-9223372036854775809"}) {
    config.source_json = concat(R"({"finetune": {"max_length": )", length, "}}");
    failure = failure_of(folder, [&] { classification_defaults(config); });
    CHECK(failure.code == ExitCode::model);
    CHECK(failure.message.ends_with(", not from 3 to 512"));
  }
}

TEST_CASE("config.json of multi-label and regression models") {
  TemporaryDirectory folder;
  TaskOptions options;
  options.train_files = {folder.write("t.csv", "text,label\nr,1\ns,2\n")};
  options.regression = true;
  ClassificationTask regression(options, kTokenizer, EncoderConfig{}, false);
  CHECK(regression.config_json() ==
        R"({"id2label":{"0":"LABEL_0"},"label2id":{"LABEL_0":0},"problem_type":"regression",)"
        R"("finetune":{"task":"classification","text_column":["text"],"label_column":"label",)"
        R"("max_length":128}})");
  options.regression = false;
  options.multi_label_separator = ";";
  ClassificationTask multi(options, kTokenizer, EncoderConfig{}, false);
  EncoderConfig config;
  config.source_json = multi.config_json();
  config.labels = {"1", "2"};
  config.problem_type = "multi_label_classification";
  CHECK(classification_defaults(config).multi_label_separator == ";");
  // A model of others: no finetune object; one label means regression.
  config = EncoderConfig{};
  config.source_json = "{}";
  config.labels = {"LABEL_0"};
  CHECK(classification_defaults(config).regression);
  CHECK(classification_defaults(config).max_length == 0);
  CHECK(classification_defaults(config).label_column == "label");
}

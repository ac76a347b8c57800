// Rows to classification samples: labels, columns, cuts, bad input.
#include <doctest/doctest.h>

#include "classification_fixture.h"
#include "core/threads/parallel.h"
#include "data/columns/text_columns.h"
#include "tasks/classification/rows/dataset.h"

using namespace finetune;
using namespace finetune::test;

namespace {

ClassificationData load(const TaskOptions& options, const EncoderConfig& config = {},
                        bool model_head = false) {
  return load_classification_data(options, kTokenizer, config, model_head);
}

TaskOptions training_on(const std::filesystem::path& file) {
  TaskOptions options;
  options.train_files = {file};
  return options;
}

std::vector<int32_t> ids(const ClassificationSide& side, int64_t sample) {
  const TokenizedSamples& s = side.set.samples;
  return {s.ids.begin() + s.offsets[size_t(sample)], s.ids.begin() + s.offsets[size_t(sample) + 1]};
}

EncoderConfig labelled(std::vector<std::string> labels, std::string problem = "") {
  EncoderConfig config;
  config.labels = std::move(labels);
  config.problem_type = std::move(problem);
  return config;
}

}  // namespace

TEST_CASE("labels are strings in the order of their code points") {
  TemporaryDirectory folder;
  TaskOptions options =
      training_on(folder.write("t.csv", "text,label\na,10\nb,é\nc,2\nd,Z\ne,NA\nf,10\n"));
  ClassificationData data = load(options);
  CHECK(data.labels.names() == std::vector<std::string>{"10", "2", "NA", "Z", "é"});
  CHECK(data.train.labels == std::vector<int32_t>{0, 4, 1, 3, 2, 0});
  CHECK(data.outputs() == 5);
  CHECK(data.max_length == 128);
  CHECK(!data.keeps_head);
  CHECK(!data.has_eval);
  CHECK(data.text_columns == std::vector<std::string>{"text"});
}

TEST_CASE("a run that goes on keeps the order of its labels") {
  TemporaryDirectory folder;
  TaskOptions options = training_on(folder.write("t.csv", "text,label\na,10\nb,9\nc,8\n"));
  CHECK(load(options).labels.names() == std::vector<std::string>{"8", "9", "10"});
  options.label_order = {"10", "8", "9"};
  CHECK(load(options).labels.names() == options.label_order);
  CHECK(load(options).train.labels == std::vector<int32_t>{0, 2, 1});
  for (const auto& other :
       {std::vector<std::string>{"10", "8"}, {"10", "8", "7"}, {"8", "8", "9"}}) {
    options.label_order = other;  // the labels of other data
    CHECK(load(options).labels.names() == std::vector<std::string>{"8", "9", "10"});
  }
}

TEST_CASE("text columns: joined, paired, and the only candidate") {
  TemporaryDirectory folder;
  auto file = folder.write("t.csv", "a,b,c,kind\nxx,yyy,zzzz zz,p\nx,,z,q\n");
  TaskOptions options = training_on(file);
  options.label_column = "kind";
  options.text_columns = {"b", "a"};
  ClassificationData joined = load(options);
  CHECK(ids(joined.train, 0) == std::vector<int32_t>{101, 203, 202, 102});
  CHECK(ids(joined.train, 1) == std::vector<int32_t>{101, 201, 102});  // b is empty, a is not
  CHECK(joined.train.set.samples.second == std::vector<uint32_t>{4, 3});

  options.text_columns = {"a"};
  options.text_pair_column = "c";
  ClassificationData pairs = load(options);
  CHECK(ids(pairs.train, 0) == std::vector<int32_t>{101, 202, 102, 204, 202, 102});
  CHECK(pairs.train.set.samples.second == std::vector<uint32_t>{3, 3});

  TaskOptions only = training_on(folder.write("s.tsv", "sentence\tlabel\nab c\t1\nd\t0\n"));
  CHECK(load(only).text_columns == std::vector<std::string>{"sentence"});
  CHECK(ids(load(only).train, 0) == std::vector<int32_t>{101, 202, 201, 102});
}

TEST_CASE("a text column's name may have commas, where the list was cut") {
  TemporaryDirectory folder;
  TaskOptions options =
      training_on(folder.write("t.csv", "\"a,b\",b,\"b,c,a\",label\nxx,yyy,zzzz,p\nx,y,z,q\n"));
  const auto columns = [&](std::vector<std::string> words) {
    options.text_columns = std::move(words);
    return load(options).text_columns;
  };
  CHECK(columns({"a", "b"}) == std::vector<std::string>{"a,b"});
  CHECK(columns({"a,b"}) == std::vector<std::string>{"a,b"});
  CHECK(columns({"b", "a", "b"}) == std::vector<std::string>{"b", "a,b"});
  CHECK_THROWS(columns({"a", "c"}));
}

TEST_CASE("texts are cut at max-length and counted, pairs the longer part first") {
  TemporaryDirectory folder;
  auto file =
      folder.write("t.csv", "text,pair,label\na bb ccc dddd,e,p\na,e,q\na,e ff ggg hhhh,p\n");
  TaskOptions options = training_on(file);
  options.max_length = 5;
  ClassificationData single = load(options);
  CHECK(ids(single.train, 0) == std::vector<int32_t>{101, 201, 202, 203, 102});
  CHECK(single.train.set.truncated == 1);

  options.text_pair_column = "pair";
  options.max_length = 6;
  ClassificationData pairs = load(options);
  CHECK(ids(pairs.train, 0) == std::vector<int32_t>{101, 201, 202, 102, 201, 102});
  CHECK(ids(pairs.train, 1) == std::vector<int32_t>{101, 201, 102, 201, 102});
  CHECK(ids(pairs.train, 2) == std::vector<int32_t>{101, 201, 102, 201, 202, 102});
  CHECK(pairs.train.set.truncated == 2);
}

TEST_CASE("a model's label map is kept if it covers the data") {
  TemporaryDirectory folder;
  TaskOptions options = training_on(folder.write("t.csv", "text,label\na,x\nb,y\n"));
  options.eval_files = {folder.write("e.csv", "text,label\na,z\nb,y\n")};
  ClassificationData kept = load(options, labelled({"z", "y", "x"}), true);
  CHECK(kept.keeps_head);
  CHECK(kept.labels.names() == std::vector<std::string>{"z", "y", "x"});
  CHECK(kept.train.labels == std::vector<int32_t>{2, 1});
  CHECK(kept.eval.labels ==
        std::vector<int32_t>{0, 1});  // z is the model's, though not in training
  CHECK(kept.unknown_labels.empty());

  options.eval_files.clear();
  auto names = [&](const EncoderConfig& config, bool head) {
    ClassificationData data = load(options, config, head);
    CHECK(!data.keeps_head);
    return data.labels.names();
  };
  std::vector<std::string> own{"x", "y"};
  CHECK(names(labelled({"z", "y"}), true) == own);   // does not cover
  CHECK(names(labelled({"y", "x"}), false) == own);  // no head, or --reinit-head
  CHECK(names(labelled({"y", "x"}, "multi_label_classification"), true) == own);
  CHECK(load(options, labelled({"y", "x"}, "single_label_classification"), true).keeps_head);
}

TEST_CASE("multi-label values") {
  CHECK(split_labels("a| b |a", "|") == std::vector<std::string_view>{"a", "b", "a"});
  CHECK(split_labels("", "|").empty());
  CHECK(split_labels(" ||", "|").empty());
  CHECK(split_labels("x::y:z", "::") == std::vector<std::string_view>{"x", "y:z"});

  TemporaryDirectory folder;
  TaskOptions options = training_on(folder.write("t.csv", "text,label\na,q|p\nb,\nc,p|p\n"));
  options.multi_label_separator = std::string("|");
  ClassificationData data = load(options);
  CHECK(data.problem == ProblemType::multi_label);
  CHECK(data.labels.names() == std::vector<std::string>{"p", "q"});
  CHECK(data.train.label_sets.ids == std::vector<int32_t>{0, 1, 0});
  CHECK(data.train.label_sets.offsets == std::vector<int64_t>{0, 2, 2, 3});
}

TEST_CASE("regression values") {
  TemporaryDirectory folder;
  TaskOptions options = training_on(folder.write("t.csv", "text,label\na,1.5\nb, -2 \nc,3e1\n"));
  options.regression = true;
  ClassificationData data = load(options);
  CHECK(data.train.targets == std::vector<double>{1.5, -2, 30});
  CHECK(data.outputs() == 1);
  CHECK(load(options, labelled({"LABEL_0"}, "regression"), true).keeps_head);
  CHECK(!load(options, labelled({"LABEL_0", "LABEL_1"}), true).keeps_head);
}

TEST_CASE("unusable rows are dropped and counted on request") {
  TemporaryDirectory folder;
  TaskOptions options =
      training_on(folder.write("t.csv", "text,label\na,x\n,x\n  ,y\nb,\nragged\nc,y\n"));
  options.rows.skip_bad_rows = true;
  ClassificationData data = load(options);
  CHECK(data.train.labels == std::vector<int32_t>{0, 1});
  CHECK(data.train.dropped == 4);
}

TEST_CASE("caps and hold-out choose samples, never labels") {
  TemporaryDirectory folder;
  std::string text = "text,label\n";
  for (int i = 0; i < 20; ++i) text += concat(std::string(size_t(i) + 1, 'w'), ",", i, "\n");
  TaskOptions options = training_on(folder.write("t.csv", text));
  options.max_train_samples = 3;
  ClassificationData capped = load(options);
  CHECK(capped.train.set.samples.size() == 3);
  CHECK(capped.labels.size() == 20);

  options.max_train_samples = 0;
  options.eval_fraction = 0.25;
  ClassificationData split = load(options);
  CHECK(split.train.set.samples.size() == 15);
  REQUIRE(split.eval.set.samples.size() == 5);
  // Each row is on one side: the only word's length identifies the row.
  std::vector<int> seen(20);
  for (int64_t i = 0; i < 15; ++i) ++seen[size_t(ids(split.train, i)[1] - 201)];
  for (int64_t i = 0; i < 5; ++i) {
    int32_t row = ids(split.eval, i)[1] - 201;
    ++seen[size_t(row)];
    CHECK(split.labels.names()[size_t(split.eval.labels[size_t(i)])] == concat(row));
    CHECK(split.eval.rows[size_t(i)] == uint32_t(row));
  }
  CHECK(seen == std::vector<int>(20, 1));

  options.max_eval_samples = 2;
  CHECK(load(options).eval.set.samples.size() == 2);
  options.eval_fraction = 0;
  options.eval_files = options.train_files;
  CHECK(load(options).eval.labels.size() == 2);
}

TEST_CASE("unknown evaluation labels get ids behind the known ones on request") {
  TemporaryDirectory folder;
  TaskOptions options = training_on(folder.write("t.csv", "text,label\na,x\nb,y\n"));
  options.eval_files = {folder.write("e.csv", "text,label\na,w\nb,x\nc,z\nd,w\n")};
  options.ignore_unknown_labels = true;
  ClassificationData data = load(options);
  CHECK(data.unknown_labels == std::vector<std::string>{"w", "z"});
  CHECK(data.eval.labels == std::vector<int32_t>{2, 0, 3, 2});
  CHECK(data.outputs() == 2);
  CHECK(data.classes() == 4);
  CHECK(data.class_name(3) == "z");
}

TEST_CASE("samples do not depend on the number of threads") {
  TemporaryDirectory folder;
  std::string text = "text,label\n";
  for (int i = 0; i < 3000; ++i) {
    text += concat(std::string(size_t(i % 17) + 1, 'w'), " x", i % 5 == 0 ? " long tail" : "", ",",
                   i % 3, "\n");
  }
  TaskOptions options = training_on(folder.write("t.csv", text));
  options.max_length = 5;
  int before = threads();
  set_threads(1);
  ClassificationData one = load(options);
  set_threads(4);
  ClassificationData four = load(options);
  set_threads(before);
  CHECK(one.train.set.samples.ids == four.train.set.samples.ids);
  CHECK(one.train.set.samples.offsets == four.train.set.samples.offsets);
  CHECK(one.train.set.samples.second == four.train.set.samples.second);
  CHECK(one.train.set.truncated == 600);
  CHECK(four.train.set.truncated == 600);
}

TEST_CASE("bad input: one line that names the place") {
  TemporaryDirectory folder;
  auto check = [&](std::string_view text, const char* message, auto&& change,
                   ExitCode code = ExitCode::data) {
    TaskOptions options = training_on(folder.write("t.csv", text));
    change(options);
    Failure failure = failure_of(folder, [&] { load(options); });
    CHECK(failure.message == message);
    CHECK(failure.code == code);
  };
  auto as_is = [](TaskOptions&) {};
  auto label_kind = [](TaskOptions& o) { o.label_column = "kind"; };
  auto regression = [](TaskOptions& o) { o.regression = true; };

  check("text,label\na,x\n ,y\n",
        "t.csv:3: column 'text' is empty (mend the row, or drop such rows with --skip-bad-rows)",
        as_is);
  check("text,label\na,x\nb,\n",
        "t.csv:3: column 'label' is empty (mend the row, or drop such rows with --skip-bad-rows)",
        as_is);
  check("text,pair,label\na,b,x\nb,,y\n",
        "t.csv:3: column 'pair' is empty (mend the row, or drop such rows with --skip-bad-rows)",
        [](TaskOptions& o) { o.text_pair_column = "pair"; });
  check("text,label\na,1\nb,inf\n",
        "t.csv:3: column 'label' is 'inf', not a finite number (mend the row, or drop such rows "
        "with --skip-bad-rows)",
        regression);
  check("text,label\na,1\nb,two\n",
        "t.csv:3: column 'label' is 'two', not a finite number (mend the row, or drop such rows "
        "with --skip-bad-rows)",
        regression);
  check("text,label\na,x\nb,x\n",
        "t.csv: column 'label' has one class alone, 'x'; training needs at least two", as_is);
  check("text,label\na,\nb,\n", "t.csv: column 'label' has no label; training needs at least one",
        [](TaskOptions& o) { o.multi_label_separator = std::string("|"); });
  check("text,label\n,x\n", "t.csv: no usable row (1 dropped)",
        [](TaskOptions& o) { o.rows.skip_bad_rows = true; });
  check("text,label\na,x\n",
        "t.csv: no column 'kind' (there are 'text', 'label'; choose one with --label-column)",
        label_kind);
  check("text^label\na^x\n",
        "t.csv: no column 'label' (there is only 'text^label'; if that is several, --delimiter "
        "names what is between them)",
        as_is);
  check("text,memo,kind\na,b,x\n",
        "t.csv: no column 'body' (there are 'text', 'memo', 'kind'; choose one with --text-column)",
        [](TaskOptions& o) {
          o.label_column = "kind";
          o.text_columns = {"body"};
        });
  check("title,memo,kind\na,b,x\n",
        "t.csv: no column 'text' (there are 'title', 'memo', 'kind'; choose one with "
        "--text-column)",
        label_kind);
  check("label\nx\n",
        "t.csv: no column is left for the text (there is only 'label'; the label is 'label')",
        as_is);
  check(
      "text,label\na,x\nb,y\n", "--max-length 600 is beyond the model's 512 positions",
      [](TaskOptions& o) { o.max_length = 600; }, ExitCode::usage);
  check(
      "text,label\na,x\nb,y\n",
      "--max-length 2: must be at least 3, for 2 special tokens and one token of text",
      [](TaskOptions& o) { o.max_length = 2; }, ExitCode::usage);
  check(
      "text,label\na,x\nb,y\n", "--text-column 'label' is the label column too",
      [](TaskOptions& o) { o.text_columns = {"label"}; }, ExitCode::usage);
  check(
      "text,label\na,1\nb,2\n", "--regression and --multi-label exclude each other",
      [](TaskOptions& o) {
        o.regression = true;
        o.multi_label_separator = std::string("|");
      },
      ExitCode::usage);
  check(
      "text,label\na,1\nb,2\n", "--class-weights balanced does not go with --regression",
      [](TaskOptions& o) {
        o.regression = true;
        o.balanced_class_weights = true;
      },
      ExitCode::usage);
  check(
      "text,label\na,1\nb,2\n", "--eval-fraction 0.9 of 2 rows leaves none for training",
      [](TaskOptions& o) { o.eval_fraction = 0.9; }, ExitCode::usage);
}

TEST_CASE("evaluation labels that training lacks are listed") {
  TemporaryDirectory folder;
  TaskOptions options = training_on(folder.write("t.csv", "text,label\na,x\nb,y\n"));
  auto message = [&](std::string_view text) {
    options.eval_files = {folder.write("e.csv", text)};
    return failure_of(folder, [&] { load(options); }).message;
  };
  CHECK(message("text,label\na,x\nb,w\n") ==
        "e.csv:3: column 'label' has 1 label that the training data lacks: 'w' (to count them as "
        "wrong: --ignore-unknown-labels)");
  CHECK(message("text,label\na,z\nb,w\n") ==
        "e.csv:2: column 'label' has 2 labels that the training data lacks: 'w', 'z' (to count "
        "them as wrong: --ignore-unknown-labels)");
  std::string many = "text,label\n";
  for (int i = 0; i < 12; ++i) many += concat("a,", char('a' + i), "\n");
  CHECK(message(many) ==
        "e.csv:2: column 'label' has 12 labels that the training data lacks: 'a', 'b', 'c', 'd', "
        "'e', 'f', 'g', 'h', 'i', 'j' and 2 more (to count them as wrong: "
        "--ignore-unknown-labels)");
  options.ignore_unknown_labels = true;
  CHECK(message(many) == "e.csv: column 'label' has no label that the model knows");
}

TEST_CASE("a finished model can be evaluated without training data") {
  TemporaryDirectory folder;
  TaskOptions options;
  options.eval_files = {folder.write("e.csv", "text,label\na,x\nb,y\n")};
  ClassificationData data = load(options, labelled({"y", "w", "x"}), true);
  CHECK(data.eval.labels == std::vector<int32_t>{2, 0});
  CHECK(data.outputs() == 3);
  Failure none = failure_of(folder, [&] { load(options); });
  CHECK(none.code == ExitCode::model);
  CHECK(none.message == "the model has no trained classification head; train one first");
  CHECK(failure_of(folder,
                   [&] {
                     load(options, labelled({"x", "z"}), true);
                   })
            .message ==
        "e.csv:3: column 'label' has 1 label that the model does not know: 'y' (to count them as "
        "wrong: --ignore-unknown-labels)");
}

// The findings of `finetune check`, by hand.
#include <doctest/doctest.h>

#include "classification_fixture.h"
#include "core/files/files.h"
#include "tasks/data_check.h"

using namespace finetune;
using namespace finetune::test;

namespace {

struct Files {
  TemporaryDirectory directory;
  TaskOptions options;

  explicit Files(std::string_view train, std::string_view eval = "") {
    write_file(directory.path() / "train.csv", train);
    options.train_files = {directory.path() / "train.csv"};
    if (eval.empty()) return;
    write_file(directory.path() / "eval.csv", eval);
    options.eval_files = {directory.path() / "eval.csv"};
  }
  DataCheck check() const { return check_data(options); }
  // For a model with this many positions.
  DataCheck check_cut(int64_t max_length, int64_t positions = 512) const {
    EncoderConfig config;
    config.max_position_embeddings = positions;
    const TaskModel model{kTokenizer, config};
    TaskOptions limited = options;
    limited.max_length = max_length;
    return check_data(limited, &model);
  }
};

const Finding* find(const DataCheck& check, std::string_view kind) {
  for (const Finding& finding : check.findings) {
    if (finding.kind == kind) return &finding;
  }
  return nullptr;
}

// `count` rows of each label whose texts differ.
std::string rows(int count, const std::vector<std::string>& labels) {
  std::string out = "text,label\n";
  for (int i = 0; i < count; ++i) {
    for (const std::string& label : labels)
      out += concat("item ", i, " ", label[0], ",", label, "\n");
  }
  return out;
}

}  // namespace

TEST_CASE("check finds nothing in rows that are as they should be") {
  const DataCheck check = Files(rows(20, {"xa", "yb"}), "text,label\nnew x,xa\nnew y,yb\n").check();
  CHECK(check.findings.empty());
  CHECK(check.train_rows == 40);
  CHECK(check.eval_rows == 2);
  CHECK(check.labels == 2);
  CHECK(check.baselines.at("baseline_majority_accuracy") == 0.5);
}

TEST_CASE("check counts rows of both files, contradictions and labels that training lacks") {
  const DataCheck check = Files(rows(20, {"xa", "yb"}) + "item 3 x,yb\n",
                                "text,label\nitem 3 x,xa\n item 4 y ,yb\nother,zc\n")
                              .check();
  REQUIRE(find(check, "overlap"));
  CHECK(find(check, "overlap")->count == 2);
  REQUIRE(find(check, "contradictions"));
  CHECK(find(check, "contradictions")->count == 2);
  CHECK(find(check, "contradictions")->text.find("1 row is wrong (2.4 %)") !=
        std::string::npos);  // of 41
  REQUIRE(find(check, "unknown-labels"));
  CHECK(find(check, "unknown-labels")->level == FindingLevel::error);
  CHECK(check.findings.front().kind == "unknown-labels");
}

TEST_CASE("check names classes with few rows, one class, a class a row, and a large class") {
  const DataCheck rare = Files(rows(20, {"xa", "yb"}) + "single,zc\n").check();
  REQUIRE(find(rare, "rare-labels"));
  CHECK(find(rare, "rare-labels")->count == 1);
  const DataCheck one = Files(rows(5, {"xa"})).check();
  REQUIRE(find(one, "one-class"));
  CHECK(one.baselines.empty());
  const DataCheck many = Files("text,label\na b,1.5\nc d,2\ne f,3.25\ng h,10\n").check();
  REQUIRE(find(many, "class-per-row"));
  CHECK(find(many, "class-per-row")->text.find("--regression") != std::string::npos);
  const DataCheck large = Files(rows(95, {"xa"}) + "q,yb\nr,yb\n").check();
  CHECK(find(large, "one-large-class"));
}

TEST_CASE("check tells columns that determine the label from those that do not") {
  std::string text = "text,code,amount,label\n";
  for (int i = 0; i < 40; ++i) {
    text += concat("item ", i, ",", i % 2 ? "c1" : "c2", ",", i, ",", i % 2 ? "odd" : "even", "\n");
  }
  Files files(text);
  const DataCheck check = files.check();
  REQUIRE(find(check, "telling-column"));
  CHECK(find(check, "telling-column")->level == FindingLevel::note);
  CHECK(find(check, "telling-column")->text.find("'code'") != std::string::npos);
  CHECK(find(check, "telling-column")->text.find("100.0 %") != std::string::npos);
  // amount has a different value in each row, so it predicts nothing
  CHECK(check.findings.size() == 1);
  files.options.text_columns = {"text", "code"};
  CHECK(find(files.check(), "telling-column")->level == FindingLevel::warning);
}

TEST_CASE("check sees labels in texts, and labels that are distributed otherwise") {
  std::string named = "text,label\n", eval = "text,label\n";
  for (int i = 0; i < 60; ++i) {
    named += concat("a Train to ", i, ",train\nby BUS ", i, ",bus\n");
    eval += concat("new ", i, i < 50 ? ",train\n" : ",bus\n");
  }
  const DataCheck check = Files(named, eval).check();
  CHECK(find(check, "label-in-text"));
  REQUIRE(find(check, "label-shift"));
  CHECK(find(check, "label-shift")->text.find("33.3 % of the rows") != std::string::npos);
  CHECK(find(check, "label-shift")->count == 20);
}

TEST_CASE("labels that training lacks are part of the shift, and rows may have several labels") {
  std::string train = "text,label\n", eval = "text,label\n";
  for (int i = 0; i < 100; ++i) {
    train += concat("t", i, i < 50 ? ",a\n" : ",b\n");
    eval += concat("e", i, i < 50 ? ",new\n" : ",b\n");
  }
  Files files(train, eval);
  files.options.ignore_unknown_labels = true;
  DataCheck check = files.check();
  REQUIRE(find(check, "label-shift"));
  CHECK(find(check, "label-shift")->text.find("50.0 % of the rows") != std::string::npos);

  // Four labels per row on average, half of which differ.
  std::string several = "text,label\n", others = "text,label\n";
  for (int i = 0; i < 100; ++i) {
    several += concat("t", i, ",a|b|", i % 2 ? "c\n" : "d|e|f\n");
    others += concat("e", i, ",c|d|", i % 2 ? "e\n" : "f|a|b\n");
  }
  Files many(several, others);
  many.options.multi_label_separator = "|";
  check = many.check();
  REQUIRE(find(check, "label-shift"));
  // Of four labels per row: a and b lose half each, c and d gain one; e and f stay.
  CHECK(find(check, "label-shift")->text.find("25.0 % of the labels") != std::string::npos);
  CHECK(find(check, "label-shift")->count == 100);
}

TEST_CASE("rows that cannot be read are a finding") {
  Files files(rows(20, {"xa", "yb"}) + "too,many,values\n");
  DataCheck check = files.check();
  REQUIRE(find(check, "faulty-rows"));
  CHECK(find(check, "faulty-rows")->level == FindingLevel::error);
  CHECK(find(check, "faulty-rows")->count == 1);
  CHECK(find(check, "faulty-rows")->text.find("train.csv:42") != std::string::npos);
  files.options.rows.skip_bad_rows = true;
  check = files.check();
  REQUIRE(find(check, "faulty-rows"));
  CHECK(find(check, "faulty-rows")->level == FindingLevel::note);
}

TEST_CASE("check counts truncated texts and lost tokens") {
  // With WordTokenizer: as many tokens as words, and two special ones.
  Files files("text,label\none two three four,xa\none,yb\ntwo,xa\nthree,yb\n");
  const DataCheck check = files.check_cut(4);
  REQUIRE(find(check, "cut-texts"));
  CHECK(find(check, "cut-texts")->count == 1);
  CHECK(find(check, "cut-texts")->text.find("13.3 %") != std::string::npos);  // 2 of 15
  CHECK(!find(Files("text,label\none,xa\ntwo,yb\n").check_cut(4), "cut-texts"));
  // Windows of two words that share one: three for the longest text.
  files.options.long_texts = {true, 1, 3};
  CHECK(!find(files.check_cut(4), "cut-texts"));
  files.options.long_texts.most_windows = 2;
  REQUIRE(find(files.check_cut(4), "cut-texts"));
  CHECK(find(files.check_cut(4), "cut-texts")->text ==
        "1 text of training (25.0 %) is cut at 2 windows of 4 tokens, which loses 6.7 % of all "
        "tokens; the longest has 6, a larger --max-windows keeps more");
}

TEST_CASE("check advises no --max-length that the model lacks") {
  const Files files("text,label\none two three four,xa\none two three five,yb\n");
  const auto text = [&](int64_t positions) {
    return find(files.check_cut(4, positions), "cut-texts")->text;
  };
  CHECK(
      text(6).ends_with("--max-length 6 keeps 99 % of the texts whole, and --long-text windows "
                        "reads more"));
  CHECK(text(5).ends_with("--max-length, up to 5, keeps more, and so does --long-text windows"));
  CHECK(text(4).ends_with("the longest has 6, --long-text windows keeps more"));
}

TEST_CASE("check says which rows cannot be used, and goes on without them") {
  const DataCheck check = Files(rows(20, {"xa", "yb"}) + " ,xa\nlast,\n").check();
  REQUIRE(find(check, "faulty-rows"));
  CHECK(find(check, "faulty-rows")->count == 2);
  CHECK(find(check, "faulty-rows")->text.find("train.csv:42") != std::string::npos);
  CHECK(check.train_rows == 40);
}

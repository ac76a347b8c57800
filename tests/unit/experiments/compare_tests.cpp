// Grouping of runs, Student's quantiles, the noise of a difference.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "contains.h"
#include "core/error.h"
#include "core/files/files.h"
#include "experiments/compare/comparison.h"
#include "experiments/compare/comparison_output.h"
#include "experiments/compare/noise.h"
#include "experiments/compare/row_scores.h"
#include "temporary_directory.h"
#include "train/options/option_values.h"

using namespace finetune;
using test::contains;

namespace {

RunRecord run_of(const std::string& lr, const std::string& seed, double accuracy) {
  RunRecord run;
  run.directory = "runs/" + lr + "-" + seed;
  for (const std::string& name : all_option_names()) run.options[name];
  run.options["lr"] = lr;
  run.options["seed"] = seed;
  run.options["output"] = run.directory.string();
  run.options["best-metric"] = "eval_accuracy";
  run.metrics = {{"eval_accuracy", accuracy}, {"eval_loss", 1}, {"eval_runtime", 2}};
  return run;
}

}  // namespace

TEST_CASE("runs that differ in the seed alone are a group") {
  const std::vector<RunRecord> runs = {run_of("0.01", "1", 0.5), run_of("0.1", "1", 0.7),
                                       run_of("0.01", "2", 0.6), run_of("0.1", "2", 0.9)};
  const RunComparison all = compare_runs(runs, {}, {});
  CHECK(all.options == std::vector<std::string>{"lr"});
  CHECK(all.metrics == std::vector<std::string>{"eval_accuracy", "eval_loss"});
  REQUIRE(all.groups.size() == 2);
  CHECK(all.groups[0].values == std::vector<std::string>{"0.1"});  // the best first
  const Estimate& accuracy = all.groups[0].metrics.at("eval_accuracy");
  CHECK(accuracy.mean == doctest::Approx(0.8));
  CHECK(accuracy.sd == doctest::Approx(std::sqrt(0.02)));
  CHECK(all.within.empty());
  const RunComparison by_seed = compare_runs(runs, {"seed"}, {"loss"});
  CHECK(by_seed.groups[0].values == std::vector<std::string>{"1"});
  CHECK(by_seed.within == std::vector<std::string>{"lr"});
  CHECK(!by_seed.larger_is_better);
}

TEST_CASE("options that --recipe quick decides by itself are not columns") {
  std::vector<RunRecord> runs = {run_of("0.01", "1", 0.5), run_of("0", "1", 0.7)};
  runs[0].options["recipe"] = "auto";
  runs[1].options["recipe"] = "quick";
  CHECK(compare_runs(runs, {}, {}).options == std::vector<std::string>{"recipe"});
  runs.push_back(run_of("0.1", "1", 0.4));
  runs[2].options["recipe"] = "auto";
  const RunComparison three = compare_runs(runs, {}, {});
  CHECK(three.options == std::vector<std::string>{"recipe", "lr"});
  CHECK(three.groups[0].values == std::vector<std::string>{"quick", ""});
}

TEST_CASE("a number is the same however it is written") {
  test::TemporaryDirectory directory;
  std::vector<fs::path> runs;
  for (const char* lr : {"2e-4", "2e-04", "0.0002", "2.0E-4", "3e-4"}) {
    const fs::path run = directory / concat("run", runs.size());
    fs::create_directory(run);
    write_file(run / "config.toml",
               concat("# finetune 0.1.0: the options of this run\nlr = ", lr,
                      "\nseed = ", runs.size(), "\nbest-metric = \"x\"\noutput = \"y\"\n"));
    write_file(run / "run.json", "{\"version\": \"0.1.0\"}");
    write_file(run / "metrics.json", "{\"train_loss\": 1, \"x\": 0.5}");
    runs.push_back(run);
  }
  const RunComparison all = compare_runs(read_runs(runs), {}, {});
  CHECK(all.options == std::vector<std::string>{"lr"});
  REQUIRE(all.groups.size() == 2);
  CHECK(all.groups[0].runs.size() == 4);
  CHECK(all.groups[0].values == std::vector<std::string>{"2e-4"});
  CHECK(all.groups[1].values == std::vector<std::string>{"3e-4"});
}

TEST_CASE("runs with the seed, options and weights of another one count once") {
  std::vector<RunRecord> runs = {run_of("0.1", "1", 0.5), run_of("0.1", "1", 0.5),
                                 run_of("0.1", "2", 0.7), run_of("0.1", "1", 0.9)};
  for (size_t r = 0; r < runs.size(); ++r) runs[r].directory = concat("runs/", r);
  runs[0].weights_sha256 = runs[1].weights_sha256 = "aa";
  runs[2].weights_sha256 = runs[3].weights_sha256 = "bb";  // of another seed: not the same run
  const RunComparison all = compare_runs(runs, {}, {});
  REQUIRE(all.groups.size() == 1);
  CHECK(all.groups[0].runs == std::vector<size_t>{0, 2, 3});
  CHECK(all.groups[0].metrics.at("eval_accuracy").mean == doctest::Approx(0.7));
  REQUIRE(all.repeated.size() == 1);
  CHECK(all.repeated[0].run == 1);
  CHECK(all.repeated[0].of == 0);
  CHECK(contains(comparison_text(all, runs, false), "runs/1 repeats runs/0"));
  CHECK(contains(comparison_json(all, runs), R"("repeated":[{"run":"runs/1","of":"runs/0"}])"));
}

TEST_CASE("a table that is wider than the terminal has fewer metrics and words") {
  std::vector<RunRecord> runs = {run_of("0.1", "1", 0.5), run_of("0.2", "1", 0.9)};
  for (RunRecord& run : runs) run.metrics["eval_f1_macro"] = run.metrics["eval_loss"] = 0.25;
  RunComparison all = compare_runs(runs, {}, {});
  add_differences(runs, all);
  const auto table = [&](size_t columns) {
    const std::string text = comparison_text(all, runs, false, columns);
    return text.substr(0, text.find("\n\n"));
  };
  const std::string whole = table(0);
  const size_t width = whole.find('\n');  // of the header, which is the widest line but one
  CHECK(contains(whole, "eval_loss"));
  CHECK(table(200) == whole);
  CHECK_FALSE(contains(table(width), "eval_loss"));
  const std::string narrow = table(30);
  CHECK(contains(narrow, "eval_accuracy"));
  CHECK_FALSE(contains(narrow, "eval_f1_macro"));
  CHECK_FALSE(contains(narrow, "noise"));
  CHECK(contains(comparison_text(all, runs, false, 30), "not shown: 2 other metrics, "));
}

TEST_CASE("runs with equal options and different results are separate rows") {
  const auto options_after = [](auto&& change, const std::vector<std::string>& by = {}) {
    std::vector<RunRecord> runs = {run_of("0.1", "1", 0.5), run_of("0.1", "2", 0.6),
                                   run_of("0.1", "3", 0.7), run_of("0.2", "1", 0.5)};
    change(runs[2]);
    const RunComparison all = compare_runs(runs, by, {});
    CHECK(all.groups.size() == (all.options == std::vector<std::string>{"lr"} ? 2 : 3));
    return all.options;
  };
  using Names = std::vector<std::string>;
  const Names lr{"lr"};
  CHECK(options_after([](RunRecord&) {}) == lr);
  for (const Names& by : {Names{}, lr}) {
    const auto has = [&](auto&& change, const std::string& name) {
      const Names found = options_after(change, by);
      return found.size() == 2 && std::find(found.begin(), found.end(), name) != found.end();
    };
    CHECK(has([](RunRecord& run) { run.is_mixed = true; }, "ngram-mix"));
    CHECK(has([](RunRecord& run) { run.lost = "ngrams"; }, "incomplete"));
    CHECK(has([](RunRecord& run) { run.device = "CPU, AVX2, fp32"; }, "device"));
    CHECK(has([](RunRecord& run) { run.data_sha256 = "cc"; }, "train"));
  }
  // With --by, runs whose options differ may be averaged.
  const Names averaged = options_after(
      [](RunRecord& run) {
        run.options["ngram-mix"] = "yes";
        run.is_mixed = true;
      },
      lr);
  CHECK(averaged == lr);
}

TEST_CASE("runs of two tasks have no metric in common by themselves") {
  std::vector<RunRecord> runs = {run_of("0.1", "1", 0.5), run_of("0.1", "2", 0.6)};
  for (RunRecord& run : runs) run.metrics["train_loss"] = 1;
  runs[1].options["task"] = "qa";
  CHECK_THROWS_WITH_AS(compare_runs(runs, {}, {}), doctest::Contains("one task at a time"), Error);
  CHECK(compare_runs(runs, {}, {"train_loss"}).deciding() == "train_loss");
  runs[1].options["task"] = runs[0].options["task"];
  runs[1].metrics.erase("eval_accuracy");
  CHECK_THROWS_WITH_AS(compare_runs(runs, {}, {}),
                       doctest::Contains("runs/0.1-2: has no eval_accuracy"), Error);
}

TEST_CASE("names are escaped in Markdown") {
  std::vector<RunRecord> runs = {run_of("0.1", "1", 0.5), run_of("0.2", "2", 0.6)};
  runs[0].directory = "a|b<img>`c`\nd*e*_f_";
  const std::string text = comparison_text(compare_runs(runs, {}, {}), runs, true);
  CHECK(contains(text, "a\\|b&lt;img&gt;\\`c\\`"));
  CHECK(contains(text, "d\\*e\\*\\_f\\_"));
  CHECK(contains(text, " eval_accuracy "));
  CHECK(!contains(text, "\nd"));
}

TEST_CASE("without predictions the seeds alone tell of noise") {
  std::vector<RunRecord> runs = {run_of("0.01", "1", 0.50), run_of("0.01", "2", 0.51),
                                 run_of("0.1", "1", 0.70), run_of("0.1", "2", 0.71)};
  RunComparison comparison = compare_runs(runs, {}, {});
  add_differences(runs, comparison);
  const Difference& difference = *comparison.groups[1].difference;
  CHECK(difference.mean == doctest::Approx(-0.2));
  CHECK(difference.noise == "seeds");
  CHECK(difference.more_than_noise);
  // Two degrees of freedom; the variance of each mean is 0.00005 / 2.
  CHECK(*difference.high == doctest::Approx(-0.2 + 4.303 * std::sqrt(0.00005)));
  CHECK(difference.unknown.find("cannot be scored") != std::string::npos);
  runs.pop_back();
  runs.erase(runs.begin());
  comparison = compare_runs(runs, {}, {});
  add_differences(runs, comparison);
  CHECK(!comparison.groups[1].difference->low);
}

TEST_CASE("scores of sampled rows match the metric") {
  test::TemporaryDirectory directory;
  write_file(directory / "predictions.csv",
             "text,gold,label,probability\nx,a,a,0.5\ny,a,b,0.5\nz,b,b,0.5\nz,c,b,0.5\n");
  RunRecord run = run_of("1", "1", 0.5);
  run.directory = directory.path();
  run.options["label-column"] = "gold";
  auto read = read_row_scores(run, "eval_accuracy");
  REQUIRE(read.index() == 0);
  const RowScores& scores = *std::get<0>(read);
  CHECK(scores.rows() == 4);
  CHECK(scores.metric(std::vector<uint32_t>{1, 0, 3, 0}) == 1);
  CHECK(scores.metric(std::vector<uint32_t>{1, 1, 0, 2}) == 0.25);
  run.metrics["eval_accuracy"] = 0.75;
  CHECK(std::get<1>(read_row_scores(run, "eval_accuracy")).find("0.75") != std::string::npos);
  run.metrics["eval_f1_macro"] = (2.0 / 3 + 0.5 + 0) / 3;
  CHECK(read_row_scores(run, "eval_f1_macro").index() == 0);
}

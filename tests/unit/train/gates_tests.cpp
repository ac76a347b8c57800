// Assertions and baselines: syntax, directions, the table.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "../contains.h"
#include "../error_line.h"
#include "core/error.h"
#include "core/files/files.h"
#include "temporary_directory.h"
#include "train/run/gates.h"
#include "train/run/junit.h"
#include "train/run/metrics_files.h"

using namespace finetune;
using finetune::test::contains, finetune::test::error_line;

TEST_CASE("every operator of --assert") {
  Assertion assertion = parse_assertion("eval_f1>=88");
  CHECK(assertion.metric == "eval_f1");
  CHECK(assertion.bound == 88.0);
  CHECK(assertion.holds(88.0));
  CHECK(!assertion.holds(87.999));
  CHECK(!parse_assertion("a>1").holds(1));
  CHECK(parse_assertion("a>1").holds(1.5));
  CHECK(parse_assertion(" eval_loss <= 1e-1 ").holds(0.1));
  CHECK(!parse_assertion("eval_loss<=0.1").holds(0.2));
  CHECK(!parse_assertion("a<1").holds(1));
  CHECK(parse_assertion("a<1").holds(-1));
  CHECK(parse_assertion("train_steps==250").holds(250));
  CHECK(!parse_assertion("train_steps==250").holds(251));
  double nan = std::numeric_limits<double>::quiet_NaN();
  for (const char* text : {"a>=0", "a>0", "a<=0", "a<0", "a==0"}) {
    CHECK(!parse_assertion(text).holds(nan));
    for (double sign : {1, -1}) {
      CHECK(!parse_assertion(text).holds(sign * std::numeric_limits<double>::infinity()));
    }
  }
}

TEST_CASE("bad --assert syntax shows the syntax") {
  for (const char* text : {"", "eval_f1", "eval_f1>=", ">=88", "eval_f1=88", "eval_f1=>88",
                           "eval_f1>=88x", "eval_f1>=88 eval_f1<=90", "eval f1>=88", "eval_f1>=nan",
                           "eval_f1~=88", "eval_f1>>8", "a>==3", "a>=0,5"}) {
    CAPTURE(text);
    CHECK(contains(error_line(ExitCode::usage, [&] { parse_assertion(text); }), "\"eval_f1>=88\""));
  }
}

TEST_CASE("a metric that the run cannot produce") {
  std::vector<std::string> available{"eval_f1", "eval_exact_match", "train_loss"};
  check_assertions({parse_assertion("eval_f1>=88")}, available);
  std::string message = error_line(
      ExitCode::usage, [&] { check_assertions({parse_assertion("eval_f2>=88")}, available); });
  CHECK(contains(message, "'eval_f2'"));
  CHECK(contains(message, "did you mean eval_f1"));
  CHECK(contains(message, "eval_exact_match, eval_f1, train_loss"));
}

TEST_CASE("against a baseline, in the direction of each metric") {
  test::TemporaryDirectory directory;
  const std::string file = directory / "metrics.json";
  write_metrics(file, {{"eval_f1", 88.3}, {"eval_loss", 0.5}, {"peak_memory_mb", 600}});
  auto larger = [](const std::string& name) { return name == "eval_f1"; };
  auto bounds = baseline_assertions({file}, {"eval_f1=0.3", " eval_loss = 0.01"}, larger);
  REQUIRE(bounds.size() == 2);
  CHECK(bounds[0].holds(88.0));
  CHECK(bounds[0].holds(95.0));
  CHECK(!bounds[0].holds(87.9999999));
  CHECK(bounds[1].holds(0.51));
  CHECK(bounds[1].holds(0.1));
  CHECK(!bounds[1].holds(0.5100001));
  CHECK(baseline_assertions({}, {}, larger).empty());

  CHECK(contains(error_line(ExitCode::usage, [&] { baseline_assertions({}, {"a=1"}, larger); }),
                 "--baseline"));
  CHECK(contains(error_line(ExitCode::usage, [&] { baseline_assertions({file}, {}, larger); }),
                 "--tolerance"));
  std::string unknown =
      error_line(ExitCode::usage, [&] { baseline_assertions({file}, {"eval_em=1"}, larger); });
  CHECK(contains(unknown, "has no eval_em"));
  CHECK(contains(unknown, "eval_f1, eval_loss, peak_memory_mb"));
  for (const char* text : {"eval_f1", "eval_f1=", "eval_f1=-1", "eval_f1=%", "eval_f1=1%%",
                           "eval_f1=-1%", "=1", "eval_f1=nan"}) {
    CAPTURE(text);
    CHECK(
        contains(error_line(ExitCode::usage, [&] { baseline_assertions({file}, {text}, larger); }),
                 "METRIC=NUMBER"));
  }
  error_line(ExitCode::usage,
             [&] { baseline_assertions({directory / "absent.json"}, {"a=1"}, larger); });
  write_file(directory / "high.json", R"({"eval_loss": 1e308})");
  write_file(directory / "low.json", R"({"eval_loss": -1e308})");
  CHECK(contains(error_line(ExitCode::usage,
                            [&] {
                              baseline_assertions({directory / "high.json", directory / "low.json"},
                                                  {"eval_loss=0"}, larger);
                            }),
                 "eval_loss are too large"));
  write_file(directory / "bad.json", "[1]");
  CHECK(
      contains(error_line(ExitCode::usage,
                          [&] { baseline_assertions({directory / "bad.json"}, {"a=1"}, larger); }),
               "bad.json"));
}

TEST_CASE("a tolerance in percent of the baseline") {
  test::TemporaryDirectory directory;
  write_metrics(
      directory / "metrics.json",
      {{"eval_f1", 80}, {"eval_loss", 0.5}, {"below", -4}, {"small", 0.0028745957599712537}});
  // A directory means its metrics.json.
  const std::string run = directory.path();
  auto bounds =
      baseline_assertions({run}, {"eval_f1=1%", "eval_loss=10 %", "below=50%"}, larger_is_better);
  REQUIRE(bounds.size() == 3);
  CHECK(bounds[0].holds(79.2));
  CHECK(!bounds[0].holds(79.199));
  CHECK(bounds[1].holds(0.55));
  CHECK(!bounds[1].holds(0.5501));
  CHECK(bounds[2].holds(-6));
  CHECK(!bounds[2].holds(-6.01));
  CHECK(bounds[0].note == "baseline 80 - 0.8");
  CHECK(baseline_assertions({run}, {"small=1%"}, larger_is_better)[0].note ==
        "baseline 0.002875 - 2.8746e-05");
  std::filesystem::remove(directory / "metrics.json");
  CHECK(contains(
      error_line(ExitCode::usage, [&] { baseline_assertions({run}, {"a=1"}, larger_is_better); }),
      ": has no metrics.json; give the directory of a run that has ended"));
}

TEST_CASE("several baselines are a mean and its noise") {
  test::TemporaryDirectory directory;
  std::vector<std::string> files;
  for (double f1 : {87.0, 88.0, 89.0}) {  // mean 88, sd 1
    files.push_back(directory / concat(f1, ".json"));
    write_metrics(files.back(), {{"eval_f1", f1}, {"eval_loss", f1 - 80}});
  }
  auto bounds = baseline_assertions(files, {"eval_f1=0.5", "eval_loss=0"}, larger_is_better);
  REQUIRE(bounds.size() == 2);
  const double noise = 4.303 * std::sqrt(1 + 1.0 / 3);  // Student, 2 degrees of freedom
  CHECK(bounds[0].bound == doctest::Approx(88 - 0.5 - noise).epsilon(1e-3));
  CHECK(bounds[1].bound == doctest::Approx(8 + noise).epsilon(1e-3));
  CHECK(bounds[0].holds(87));
  CHECK(!bounds[0].holds(80));
  CHECK(contains(bounds[0].note, "3 baselines 88 - 0.5 - noise 4.9"));
  files.push_back(files[0]);
  CHECK(contains(error_line(ExitCode::usage,
                            [&] { baseline_assertions(files, {"eval_f1=1"}, larger_is_better); }),
                 "twice"));
}

TEST_CASE("gates as JUnit") {
  test::TemporaryDirectory directory;
  const std::map<std::string, double> metrics{{"eval_f1", 87.5}, {"eval_loss", 0.25}};
  auto report = evaluate_assertions(
      {parse_assertion("eval_f1>=88"), parse_assertion("eval_loss<1")}, metrics);
  const std::string xml = junit_xml("train", "runs/<a>\x1b", report, metrics);
  CHECK(contains(xml, "tests=\"2\" failures=\"1\""));
  CHECK(contains(xml, "runs/&lt;a&gt;\\x1b"));
  CHECK(contains(xml, "<failure type=\"gate\" message=\"eval_f1 is 87.5, not &gt;= 88\""));
  const fs::path file = directory / "new/gates.xml";
  write_junit(file, xml);
  CHECK(read_text_file(file) == xml);
  check_junit_output(file, "", nullptr);  // a file of ours is replaced
  write_file(directory / "other.xml", "<testsuites>");
  CHECK(contains(error_line(ExitCode::usage,
                            [&] { check_junit_output(directory / "other.xml", "", nullptr); }),
                 "not a JUnit file"));
  CHECK(contains(
      error_line(ExitCode::usage, [&] { check_junit_output(directory.path(), "", nullptr); }),
      "directory"));
}

TEST_CASE("the table") {
  auto report =
      evaluate_assertions({parse_assertion("eval_f1>=88"), parse_assertion("eval_loss<1")},
                          {{"eval_f1", 87.5}, {"eval_loss", 0.25}});
  CHECK(!report.passed);
  CHECK(report.table ==
        "metric     value  bound\n"
        "eval_f1    87.5   >= 88  FAIL\n"
        "eval_loss  0.25   < 1    PASS\n");
  CHECK(evaluate_assertions({}, {}).passed);
  CHECK(evaluate_assertions({}, {}).table.empty());
  auto missing = evaluate_assertions({parse_assertion("eval_f1>=0")}, {});
  CHECK(!missing.passed);
  CHECK(contains(missing.table, "none"));
}

TEST_CASE("directions of a run's own metrics") {
  CHECK(larger_is_better("train_samples_per_second"));
  CHECK(larger_is_better("eval_f1_macro"));
  CHECK(!larger_is_better("eval_mae"));
  CHECK(!larger_is_better("train_loss"));
  CHECK(!larger_is_better("peak_memory_mb"));
  CHECK(!larger_is_better("startup_seconds"));
}

TEST_CASE("a layout has the metrics of its own axes") {
  using Names = std::vector<std::string>;
  CHECK(layout_metric_names(Layout(1, 1, 1)) == Names{});
  CHECK(layout_metric_names(Layout(3, 1, 1)) == Names{"dp_bytes"});
  CHECK(layout_metric_names(Layout(2, 2, 1)) == Names{"pipeline_bubble", "pp_bytes"});
  CHECK(layout_metric_names(Layout(8, 2, 2)) ==
        Names{"pipeline_bubble", "pp_bytes", "tp_bytes", "dp_bytes"});
  for (const std::string& name : layout_metric_names(Layout(8, 2, 2))) {
    CHECK(!larger_is_better(name));
  }
}

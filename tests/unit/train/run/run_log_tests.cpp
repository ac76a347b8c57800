// The tables beside metrics.jsonl: rows, resumption, odd numbers.
#include <doctest/doctest.h>

#include <cmath>

#include "core/files/files.h"
#include "temporary_directory.h"
#include "train/record/progress.h"
#include "train/record/run_log.h"

using namespace finetune;

namespace {

NamedNumbers step_of(int step) {
  return {{"step", step}, {"loss", 0.5 * step}, {"lr", 5e-5}};
}

}  // namespace

TEST_CASE("progress of rows and of shares") {
  const auto whole = [](const std::vector<ProgressPart>& parts) {
    return fitting_parts(parts, 80);
  };
  CHECK(whole(progress_parts("predicted", 8192, "rows", 0.25, 4)) ==
        "predicted 8,192 rows  2048.0 rows/s  25 %  remaining 0:12");
  CHECK(whole(progress_parts("predicted", 8192, "rows", -1, 4)) ==
        "predicted 8,192 rows  2048.0 rows/s");
  CHECK(whole(progress_parts("evaluating", 0.5, 90)) == "evaluating  50 %  remaining 1:30");
  CHECK(whole(progress_parts("evaluating", 0, 90)) == "evaluating");
  CHECK(fitting_parts(progress_parts("predicted", 8192, "rows", 0.25, 4), 45) ==
        "predicted 8,192 rows  25 %  remaining 0:12");
}

TEST_CASE("steps and evaluations are tables of their own") {
  test::TemporaryDirectory directory;
  const RunDirectory run(directory / "run", OutputMode::create);
  const fs::path steps = run.metrics_table(), evaluations = run.evaluations_table();
  {
    RunLog log(run, -1, -1, 1);
    CHECK(!fs::exists(steps));
    for (int step = 1; step <= 3; ++step) log.append_step(step_of(step));
    log.append_evaluation({{"step", 3}, {"eval_loss", 0.25}, {"eval_f1", std::nan("")}});
    log.append_step(step_of(4));
  }
  CHECK(read_text_file(steps) == "step,loss,lr\n1,0.5,5e-05\n2,1,5e-05\n3,1.5,5e-05\n4,2,5e-05\n");
  CHECK(read_text_file(evaluations) == "step,eval_loss,eval_f1\n3,0.25,\n");
  // Killed after a line and before its row, or inside a row: the lines count.
  write_file(steps, "step,loss,lr\n1,0.5,5e-05\n2,1,");
  {
    RunLog log(run, 3, 3, 1);
    log.append_step(step_of(4));
  }
  CHECK(read_text_file(steps) == "step,loss,lr\n1,0.5,5e-05\n2,1,5e-05\n3,1.5,5e-05\n4,2,5e-05\n");
  CHECK(read_text_file(evaluations) == "step,eval_loss\n3,0.25\n");
  // An evaluation that is repeated.
  {
    RunLog log(run, 3, 2, 1);
    CHECK(!fs::exists(evaluations));
    log.append_evaluation({{"step", 3}, {"eval_loss", 0.5}});
  }
  CHECK(read_text_file(evaluations) == "step,eval_loss\n3,0.5\n");
}

TEST_CASE("a table that cannot be written is named") {
  test::TemporaryDirectory directory;
  fs::create_directories(directory / "run/metrics.csv/x");
  CHECK_THROWS_WITH_AS(MetricsTable(directory / "run/metrics.csv", {}),
                       doctest::Contains("metrics.csv"), Error);
  MetricsTable table(directory / "absent/metrics.csv", {});
  CHECK_THROWS_WITH_AS(table.append({{"step", 1}}), doctest::Contains("metrics.csv"), Error);
}

TEST_CASE("lines of a log are read as they are whole") {
  test::TemporaryDirectory directory;
  CHECK(read_metrics_log(directory / "absent").empty());
  write_file(directory / "log",
             "{\"step\":1,\"loss\":2.5}\nnonsense\n{}\n{\"step\":2,\"x\":\"y\"}\n{\"st");
  const auto lines = read_metrics_log(directory / "log");
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] == NamedNumbers{{"step", 1}, {"loss", 2.5}});
  CHECK(lines[1] == NamedNumbers{{"step", 2}});
}

TEST_CASE("damaged lines of metrics.jsonl are counted, and none is read without bounds") {
  test::TemporaryDirectory directory;
  const std::string good = "{\"step\":1,\"loss\":2}\n";
  const fs::path log = directory / "log";
  write_file(log,
             concat(good, "\n\n", std::string(3, '\0'), "\n{\"step\":2,\"lo\n", good, "{\"st"));
  CHECK(read_metrics_lines(log).lines.size() == 2);
  CHECK(read_metrics_lines(log).damaged == 3);
  fs::resize_file(log, uintmax_t{1} << 29);  // sparse: one line of zeros
  CHECK(read_metrics_lines(log).lines.size() == 2);
  MetricsLog(log, 1).append({{"step", 2}});
  CHECK(read_metrics_lines(log).damaged == 0);
  fs::resize_file(log, uintmax_t{20} << 30);
  CHECK_THROWS_WITH_AS(read_metrics_lines(log), doctest::Contains("holds more than"), Error);
  CHECK_THROWS_WITH_AS(MetricsLog(log, 1), doctest::Contains("holds more than"), Error);
}

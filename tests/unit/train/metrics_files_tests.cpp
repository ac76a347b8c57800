// metrics.jsonl, metrics.json and run.json: values, resumption, errors.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/files/files.h"
#include "temporary_directory.h"
#include "train/run/metrics_files.h"

using namespace finetune;

TEST_CASE("a line of numbers") {
  CHECK(json_line({{"step", 100000}, {"epoch", 0.5}, {"loss", 0.1}, {"lr", 5e-5}}) ==
        R"({"step":100000,"epoch":0.5,"loss":0.1,"lr":5e-05})");
  CHECK(json_line({}) == "{}");
  double infinity = std::numeric_limits<double>::infinity();
  CHECK(json_line({{"a", infinity}, {"b", 1}, {"c", std::nan("")}}) == R"({"b":1})");
  CHECK(json_line({{"big", 1e300}, {"third", 1.0 / 3.0}}) ==
        R"({"big":1e+300,"third":0.3333333333333333})");
}

TEST_CASE("metrics.json reads back to the same values") {
  test::TemporaryDirectory directory;
  std::map<std::string, double> metrics{
      {"eval_f1", 1.0 / 3.0}, {"train_steps", 250}, {"tiny", 1e-300}, {"minus", -0.1}};
  write_metrics(directory / "metrics.json", metrics);
  CHECK(read_metrics(directory / "metrics.json") == metrics);
  metrics["broken"] = std::nan("");
  write_metrics(directory / "metrics.json", metrics);
  metrics.erase("broken");
  CHECK(read_metrics(directory / "metrics.json") == metrics);
}

TEST_CASE("run.json holds strings as they are") {
  test::TemporaryDirectory directory;
  write_facts(directory / "run.json", {{"version", "0.1.0"}, {"cpu", "\"A\"\\\n\xff"}});
  CHECK(read_text_file(directory / "run.json") ==
        "{\n  \"version\": \"0.1.0\",\n  \"cpu\": \"\\\"A\\\"\\\\\\n\xEF\xBF\xBD\"\n}\n");
}

TEST_CASE("after a resume each step occurs once") {
  test::TemporaryDirectory directory;
  fs::path path = directory / "metrics.jsonl";
  {
    MetricsLog log(path, -1);
    for (int step = 1; step <= 5; ++step) log.append({{"step", step}, {"loss", 0.5 * step}});
    log.append({{"step", 5}, {"eval_loss", 0.25}});
    log.sync();
    for (int step = 6; step <= 7; ++step) log.append({{"step", step}, {"loss", 0.5 * step}});
  }
  std::string whole = read_text_file(path);
  write_file(path, whole + "{\"step\":8,\"lo");  // killed while writing
  {
    MetricsLog log(path, 5, 5);
    log.append({{"step", 6}, {"loss", 3}});
  }
  CHECK(read_text_file(path) ==
        "{\"step\":1,\"loss\":0.5}\n{\"step\":2,\"loss\":1}\n{\"step\":3,\"loss\":1.5}\n"
        "{\"step\":4,\"loss\":2}\n{\"step\":5,\"loss\":2.5}\n{\"step\":5,\"eval_loss\":0.25}\n"
        "{\"step\":6,\"loss\":3}\n");
  // Stopped after the evaluation line of step 5, so the evaluation will be repeated.
  { MetricsLog log(path, 5, 4); }
  CHECK(read_text_file(path).find("eval_loss") == std::string::npos);
  CHECK(read_text_file(path).ends_with("{\"step\":5,\"loss\":2.5}\n"));
  { MetricsLog log(path, 0); }
  CHECK(read_text_file(path) == "");
  { MetricsLog log(directory / "new.jsonl", 5); }
  CHECK(read_text_file(directory / "new.jsonl") == "");
  write_file(path, "{\"step\":1}\n");
  { MetricsLog log(path, -1); }
  CHECK(read_text_file(path) == "");
}

TEST_CASE("a log that cannot be written is named") {
  test::TemporaryDirectory directory;
  CHECK_THROWS_WITH_AS(MetricsLog(directory / "absent" / "metrics.jsonl", -1),
                       doctest::Contains("metrics.jsonl"), Error);
}

TEST_CASE("a log that is a link is not followed") {
  test::TemporaryDirectory directory;
  const std::string line = "{\"step\":1,\"loss\":1}\n";
  write_file(directory / "victim", line);
  fs::create_symlink(directory / "victim", directory / "metrics.jsonl");
  for (int64_t step : {-1, 0, 1}) {
    CHECK_THROWS_WITH_AS(MetricsLog(directory / "metrics.jsonl", step),
                         doctest::Contains("is a symbolic link"), Error);
  }
  CHECK(read_text_file(directory / "victim") == line);
}

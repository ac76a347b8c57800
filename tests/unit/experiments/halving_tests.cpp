// Successive halving: when settings are dropped, and which continue.
#include <doctest/doctest.h>

#include <limits>

#include "core/files/files.h"
#include "experiments/sweep/halving.h"
#include "temporary_directory.h"
#include "train/schedule.h"

using namespace finetune;

namespace {

Grid halving_grid(const std::string& sweep) {
  return expand_grid(parse_grid("model = 'm'\ntrain = 't'\n[sweep]\n" + sweep, "grid.toml"), "out");
}

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("runs that differ in their seed alone are one setting") {
  const auto settings = settings_of(halving_grid("seed = [1, 2]\nlr = [1, 2, 3]\n"));
  REQUIRE(settings.size() == 3);
  CHECK(settings[0].runs == std::vector<size_t>{0, 3});
  CHECK(settings[2].runs == std::vector<size_t>{2, 5});
  CHECK(settings_of(halving_grid("seed = [1, 2, 3]\n")).size() == 1);
}

TEST_CASE("rungs are as many as settings and evaluations allow") {
  CHECK(rung_shares(27, 100, 3) == std::vector<double>{1.0 / 27, 1.0 / 9, 1.0 / 3});
  CHECK(rung_shares(27, 9, 3) == std::vector<double>{1.0 / 9, 1.0 / 3});
  CHECK(rung_shares(8, 100, 3) == std::vector<double>{1.0 / 3});
  CHECK(rung_shares(4, 4, 2) == std::vector<double>{1.0 / 4, 1.0 / 2});
  CHECK(rung_shares(2, 100, 3).empty());
  CHECK(rung_shares(100, 2, 3).empty());
}

TEST_CASE("a rung is an evaluation that the run has anyway") {
  CHECK(evaluation_at_share(1.0 / 9, 90, 10) == 10);
  CHECK(evaluation_at_share(1.0 / 3, 90, 10) == 30);
  CHECK(evaluation_at_share(1.0 / 3, 100, 10) == 40);  // the fourth of 10
  CHECK(evaluation_at_share(1.0 / 3, 25, 10) == 10);   // 10, 20, 25
  CHECK(evaluation_at_share(1, 25, 10) == 25);
  const RunLength length{25, 10};
  CHECK(length.evaluations() == 3);
}

TEST_CASE("one in eta goes on, of equals the first, of failures none") {
  using Values = std::vector<std::optional<double>>;
  CHECK(survivors(Values{0.1, 0.5, 0.3, 0.5}, true, 2) == std::vector<size_t>{1, 3});
  CHECK(survivors(Values{0.1, 0.5, 0.3, 0.5}, false, 2) == std::vector<size_t>{0, 2});
  CHECK(survivors(Values{0.5, 0.5, 0.5, 0.5}, true, 3) == std::vector<size_t>{0, 1});
  CHECK(survivors(Values{std::nullopt, 0.5, kNaN, 0.1}, true, 2) == std::vector<size_t>{1, 3});
  CHECK(survivors(Values{std::nullopt, kNaN, 0.1, std::nullopt}, false, 2) ==
        std::vector<size_t>{2});
  CHECK(survivors(Values{std::nullopt, std::nullopt}, true, 2).empty());
}

TEST_CASE("a run's value on the way is the best of its evaluations so far") {
  const finetune::test::TemporaryDirectory directory;
  SweepRun run;
  run.options.output = directory.path().string();
  CHECK_FALSE(value_at(run, 10));
  write_file(directory.path() / "config.toml", "best-metric = \"eval_loss\"\n");
  CHECK_FALSE(value_at(run, 10));
  write_file(
      directory.path() / "metrics.jsonl",
      "{\"step\":10,\"loss\":1}\n{\"step\":10,\"epoch\":1,\"eval_loss\":0.5,\"eval_f1\":1}\n"
      "{\"step\":20,\"epoch\":2,\"eval_loss\":0.7,\"eval_f1\":2}\n{\"step\":21,\"loss\":1}\n");
  REQUIRE(value_at(run, 20));
  CHECK(value_at(run, 20)->value == 0.5);
  CHECK(value_at(run, 20)->metric == "eval_loss");
  CHECK(value_at(run, 20)->metrics ==
        std::map<std::string, double>{{"eval_loss", 0.7}, {"eval_f1", 2}});
  CHECK(value_at(run, 10)->metrics.at("eval_f1") == 1);
  CHECK_FALSE(value_at(run, 30));  // it has not got this far
  write_file(directory.path() / "metrics.json", "{\"train_loss\":1}");
  CHECK(value_at(run, 30)->value == 0.5);  // it stopped early
}

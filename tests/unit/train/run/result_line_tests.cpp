// The output of --json: identity and metrics in one line.
#include <doctest/doctest.h>

#include "train/record/result_line.h"

using namespace finetune;

TEST_CASE("options that were given another value than the default") {
  CHECK(options_given(TrainOptions()).empty());
  TrainOptions options;
  options.output = "runs/a";
  options.seed = 7;
  options.task = "qa";
  options.learning_rate = 2e-4;
  options.train = {"a.csv", "b.csv"};
  options.json = true;
  options.weight_decay = 0.01;  // the default
  const std::vector<ConfigItem> given = options_given(options);
  REQUIRE(given.size() == 2);
  CHECK(given[0].name == "train");
  CHECK(given[1].name == "lr");
}

TEST_CASE("what follows from the layout identifies a run, one shard does not") {
  const auto names = [](const TrainOptions& options) {
    std::string all;
    for (const ConfigItem& item : options_given(options)) {
      all += concat(item.name, "=", std::get<int64_t>(item.value), " ");
    }
    return all;
  };
  const auto config = [](std::string_view text) { return parse_config_text(text, "config.toml"); };
  TrainOptions options;
  CHECK(names(with_cut_of(options, config("virtual-shards = 1\ntensor-shards = 1\n"))).empty());
  CHECK(names(with_cut_of(options,
                          config("micro-batches = 8\nvirtual-shards = 2\ntensor-shards = 4\n"))) ==
        "micro-batches=8 virtual-shards=2 tensor-shards=4 ");
  options.virtual_shards = 1;  // was given
  CHECK(names(with_cut_of(options, config("virtual-shards = 1\nmicro-batches = 1\n"))) ==
        "micro-batches=1 virtual-shards=1 ");
}

TEST_CASE("a run that goes on names the recipe it began with") {
  const auto named = [](TrainOptions options, std::string_view kept) {
    std::string all;
    for (const ConfigItem& item : options_given(
             with_recipe_of(std::move(options), parse_config_text(kept, "config.toml")))) {
      all += item.name + " ";
    }
    return all;
  };
  const std::string_view by_hand = "recipe = \"hf\"\nepochs = 20.0\nbatch-size = 32\nlr = 1e-4\n";
  const std::string_view of_before = "epochs = 3.0\nbatch-size = 16\nlr = 5e-5\n";
  const std::string_view by_data = "recipe = \"auto\"\nepochs = 20.0\nbatch-size = 16\nlr = 1e-4\n";
  const TrainOptions nothing;
  TrainOptions both;
  both.epochs = 20;
  both.learning_rate = 1e-4;
  CHECK(named(both, by_hand) == "epochs lr ");
  CHECK(named(nothing, by_hand) == "epochs lr ");  // which say hf
  CHECK(named(nothing, of_before) == "recipe batch-size ");
  CHECK(named(nothing, by_data).empty());
  CHECK(named(both, by_data) == "recipe epochs lr ");
  TrainOptions timed;
  timed.time_budget = "2m";
  CHECK(named(timed, "time-budget = \"2m\"\nrecipe = \"auto\"\nmax-steps = 9\n") ==
        "recipe max-steps ");
  CHECK(named(timed, "time-budget = \"2m\"\nrecipe = \"quick\"\n") == "recipe ");
}

TEST_CASE("identity and metrics are one line") {
  RunIdentity run{"runs/\x1b\n", "qa", {}, std::nullopt, "ab"};
  CHECK(result_line(run, {}) ==
        "{\"output\":\"runs/"
        "\\u001b\\n\",\"task\":\"qa\",\"weights_sha256\":\"ab\",\"options\":{}}\n");
  run.output = "";
  run.seed = 42;
  run.options = {{"lr", 2e-4},
                 {"epochs", 3.0},
                 {"no-shuffle", true},
                 {"max-steps", int64_t(5)},
                 {"train", std::vector<std::string>{std::string("a\xE2\x80") + "\xAE.csv"}}};
  CHECK(
      result_line(run, {{"eval_f1", 0.25}, {"train_steps", 5}}) ==
      R"({"task":"qa","seed":42,"weights_sha256":"ab","options":{"lr":0.0002,"epochs":3.0,)"
      R"("no-shuffle":true,"max-steps":5,"train":["a\u202e.csv"]},"eval_f1":0.25,"train_steps":5})"
      "\n");
}

// A run's stored options, read back: a seal is a checksum, not proof of origin.
#include <doctest/doctest.h>

#include "../contains.h"
#include "core/error.h"
#include "train/options/config_file.h"
#include "train/options/option_values.h"
#include "train/resume.h"

using namespace finetune;
using finetune::test::contains;

namespace {

TrainOptions given() {
  TrainOptions options;
  options.model = "m";
  options.train = {"t.csv"};
  options.output = "o";
  return options;
}

// The options of a run that was given those of given() and resolved the rest.
std::string kept_with(const std::string& more) {
  TrainOptions options = given();
  options.precision = "fp32";
  options.recipe = "auto";
  return write_config(config_items(options), "finetune 0.1.0") + more;
}

struct Outcome {
  ExitCode code = ExitCode::done;
  std::string message;
};

Outcome resume_from(const std::string& kept) {
  TrainOptions options = given();
  try {
    continue_with_options(options, kept, "step-00000001.h5");
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {};
}

}  // namespace

TEST_CASE("a run's own options are adopted") {
  TrainOptions options = given();
  auto adopted = continue_with_options(
      options, kept_with("task = \"classification\"\nmax-length = 64\nvirtual-shards = 3\n"), "c");
  CHECK(options.task == "classification");
  CHECK(options.precision == "fp32");
  CHECK(options.max_length == 64);
  CHECK(options.virtual_shards == 3);
  CHECK(adopted == std::vector<std::string>{"task", "precision", "ngram-mix", "head-init", "recipe",
                                            "max-length", "virtual-shards", "tensor-shards"});
}

TEST_CASE("a recipe that is not given is the run's, with what it decided") {
  const auto resumed = [](const char* recipe, const std::string& kept) {
    TrainOptions options = given();
    options.recipe = recipe;
    continue_with_options(options, kept, "c");
    return options;
  };
  const std::string by_auto = kept_with("epochs = 7.0\nlr = 0.0003\n");
  for (const char* recipe : {"", "auto"}) {
    const TrainOptions options = resumed(recipe, by_auto);
    CHECK(options.recipe == "auto");
    CHECK(options.epochs == 7.0);
    CHECK(options.learning_rate == 3e-4);
  }
  CHECK_THROWS_WITH_AS(resumed("hf", by_auto), doctest::Contains("recipe (auto there, hf now)"),
                       Error);
  // What a time budget chose is the run's, whether the budget is given again or not.
  const std::string by_time = kept_with("time-budget = \"2m\"\nmax-steps = 50\nlr = 0.0003\n");
  CHECK(resumed("", by_time).max_steps == 50);
  CHECK(resumed("auto", by_time).time_budget == "2m");
  std::string fitted = kept_with("time-budget = \"2m\"\nlr = 0.0\n");
  fitted.replace(fitted.find("\"auto\"\n", fitted.find("recipe")), 6, "\"quick\"");
  CHECK(resumed("auto", fitted).recipe == "quick");
  CHECK_THROWS_WITH_AS(resumed("hf", by_time), doctest::Contains("recipe (auto there, hf now)"),
                       Error);
  std::string of_before = by_auto;
  const std::string line = "recipe = \"auto\"\n";
  of_before.erase(of_before.find(line), line.size());
  CHECK(resumed("", of_before).recipe == "hf");
}

TEST_CASE("a run of before there were tensor shards has one") {
  for (const std::optional<int64_t> asked : {std::optional<int64_t>(), {1}}) {
    TrainOptions options = given();
    options.tensor_shards = asked;
    continue_with_options(options, kept_with(""), "c");
    CHECK(options.tensor_shards == 1);
  }
  TrainOptions options = given();
  options.tensor_shards = 2;
  CHECK_THROWS_WITH_AS(continue_with_options(options, kept_with(""), "c"),
                       doctest::Contains("tensor-shards (1 there, 2 now)"), Error);
}

TEST_CASE(
    "a run of before rows were held out by strata, and targets scaled, is not mixed with that") {
  // The options of an earlier version's run, which lack some lines.
  const auto resumed = [](TrainOptions then, TrainOptions now) -> std::string {
    then.precision = "fp32";
    std::vector<ConfigItem> items = config_items(then);
    std::erase_if(items, [](const ConfigItem& item) {
      return item.name == "eval-split" || item.name == "no-standardize";
    });
    try {
      continue_with_options(now, write_config(items, ""), "c");
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  };
  TrainOptions options = given();
  CHECK(resumed(options, options).empty());
  options.eval_fraction = 0.1;
  CHECK(contains(resumed(options, options), "eval-split (random there, stratified now)"));
  TrainOptions as_before = options;
  as_before.eval_split = "random";
  CHECK(resumed(options, as_before).empty());
  options = given();
  options.regression = true;
  CHECK(contains(resumed(options, options), "no-standardize (true there, false now)"));
  as_before = options;
  as_before.no_standardize = true;
  CHECK(resumed(options, as_before).empty());
}

TEST_CASE("options that no run has written are the checkpoint's fault") {
  for (const char* damaged :
       {"\x01\x02", "lr", "x = \"\xff\"", "[table]", "task = \"chess\"", "max-length = 0",
        "max-length = -9223372036854775808", "max-length = \"\\u001b[31m\"", "max-length = [3]",
        "micro-batch-tokens = 0", "micro-batch-tokens = 1e30", "virtual-shards = 1000000000000",
        "dropout = \"much\"", "max-steps = 1.5", "save-every = true"}) {
    const Outcome outcome = resume_from(kept_with(damaged));
    CAPTURE(damaged);
    CAPTURE(outcome.message);
    CHECK(outcome.code == ExitCode::model);
    CHECK(contains(outcome.message, "step-00000001.h5"));
    CHECK(outcome.message.find('\x1b') == std::string::npos);
  }
  std::string many;
  for (int i = 0; i < 2000; ++i) many += concat("option-", i, " = 1\n");
  CHECK(contains(resume_from(kept_with(many)).message, "more entries than there are options"));
}

TEST_CASE("options that differ are the user's choice, and shown harmlessly") {
  std::string kept = kept_with("");
  kept.replace(kept.find("label-column = \"label\""), 22, "label-column = \"\\u001b[2Jx\"");
  const Outcome outcome = resume_from(kept);
  CHECK(outcome.code == ExitCode::usage);
  CHECK(contains(outcome.message, "label-column (\\x1b[2Jx there, label now)"));
}

TEST_CASE("a run with another loss of class weights and smoothing together is not resumed") {
  FoundCheckpoint found;
  found.file.path = "step-00000001.h5";
  TrainOptions options = given();
  require_same_loss(options, found);
  options.class_weights = "balanced";
  require_same_loss(options, found);
  options.label_smoothing = 0.1;
  CHECK_THROWS_WITH_AS(require_same_loss(options, found),
                       doctest::Contains("step-00000001.h5 is from a version"), Error);
  found.state.loss = named_loss(options);
  require_same_loss(options, found);
  options.class_weights = "none";
  CHECK_THROWS_AS(require_same_loss(options, found), Error);
}

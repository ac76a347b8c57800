// Recipes: the options that they set, and those that they leave.
#include <doctest/doctest.h>

#include <utility>

#include "contains.h"
#include "train/recipe/recipe.h"
#include "train/recipe/time_budget.h"

namespace finetune {
namespace {

TrainOptions of_recipe(const char* name) {
  TrainOptions options;
  options.recipe = name;
  return options;
}

TEST_CASE("Hugging Face's defaults need no data, and given options stay") {
  TrainOptions options = of_recipe("hf");
  options.epochs = 7;
  const TrainOptions filled = with_fixed_recipe(options);
  CHECK(*filled.epochs == 7);
  CHECK(*filled.batch_size == 32);
  CHECK(*filled.learning_rate == 5e-5);
  CHECK(*filled.warmup_ratio == 0.1);
  CHECK(*filled.layer_lr_decay == 1);
}

TEST_CASE("auto waits for the data") {
  const TrainOptions options = with_fixed_recipe(of_recipe("auto"));
  CHECK(!options.epochs);
  CHECK(!options.learning_rate);
}

TEST_CASE("giving rate and length selects Hugging Face's other values, else auto") {
  TrainOptions options;
  CHECK(recipe_of(options) == "auto");
  options.learning_rate = 1e-4;
  CHECK(recipe_of(options) == "auto");
  for (const bool by_steps : {false, true}) {
    TrainOptions both = options;
    if (by_steps) {
      both.max_steps = 10;
    } else {
      both.epochs = 2;
    }
    CHECK(recipe_of(both) == "hf");
    const std::string words =
        fill_recipe(both, TrainOptions(both), {TaskKind::classification, 1000, 384});
    CHECK(words.starts_with("recipe hf: "));
    CHECK(words.find("n-grams") == std::string::npos);  // there are no evaluation rows
    CHECK(both.recipe == "hf");
    CHECK(*both.batch_size == 32);
    both.recipe = "auto";
    CHECK(recipe_of(both) == "auto");
  }
  options.learning_rate.reset();
  options.epochs = 2;
  CHECK(recipe_of(options) == "auto");
}

TEST_CASE("a warning says where two numbers turn the mix with n-grams off") {
  const auto says = [](const TrainOptions& given, TaskKind task = TaskKind::classification) {
    TrainOptions options = given;
    fill_recipe(options, given, {task, 1000, 384});
    return warning_of_lost_mix(options, given, task)
        .starts_with("warning: --lr and --epochs together choose --recipe hf");
  };
  TrainOptions given;
  given.eval_fraction = 0.1;
  given.learning_rate = 1e-4;
  CHECK(!says(given));
  given.epochs = 2;
  CHECK(says(given));
  CHECK(!says(given, TaskKind::qa));
  TrainOptions other = given;
  other.recipe = "hf";
  CHECK(!says(other));
  other = given;
  other.ngram_mix = "no";
  CHECK(!says(other));
  other = given;
  other.regression = true;
  CHECK(!says(other));
  other = given;
  other.eval_fraction = 0;
  CHECK(!says(other));
  other = given;
  other.batch_size = 8;
  other.warmup_ratio = 0;
  other.layer_lr_decay = 1;  // nothing is left to the recipe
  CHECK(says(other));
}

TEST_CASE("auto: few rows of a label are seen more often, wide models learn more slowly") {
  const auto filled = [](int64_t samples, int64_t hidden, int64_t labels = 24) {
    TrainOptions options = of_recipe("auto");
    fill_recipe(options, TrainOptions(options),
                {TaskKind::classification, samples, hidden, labels});
    return options;
  };
  CHECK(*filled(100, 384).epochs > *filled(4000, 384).epochs);
  CHECK(*filled(4000, 384).epochs > *filled(100'000, 384).epochs);
  CHECK(*filled(500, 384).epochs == 29);
  CHECK(*filled(4000, 384).epochs == 10);
  CHECK(*filled(100'000, 384).epochs == 6);
  CHECK(*filled(100'000'000, 384).epochs == 3);
  CHECK(*filled(500, 384, 2).epochs == 10);
  CHECK(*filled(3668, 384, 2).epochs == 7);
  CHECK(*filled(67'349, 384, 2).epochs == 4);
  CHECK(*filled(385, 384, 77).epochs == 30);
  CHECK(*filled(9002, 384, 77).epochs == 9);
  CHECK(*filled(1000, 384, 1).epochs == *filled(1000, 384, 2).epochs);
  CHECK(*filled(4000, 384).learning_rate == 1e-4);
  CHECK(*filled(4000, 768).learning_rate == 2.5e-5);
  CHECK(*filled(4000, 1024).learning_rate == 1.4e-5);
  CHECK(*filled(4000, 32).learning_rate <= 1e-3);
  CHECK(*filled(0, 384).epochs <= 30);
}

TEST_CASE("auto: a fitted head needs fewer epochs") {
  const auto epochs = [](int64_t samples, int64_t labels) {
    TrainOptions options = of_recipe("auto");
    fill_recipe(options, TrainOptions(options),
                {TaskKind::classification, samples, 384, labels, true});
    return *options.epochs;
  };
  CHECK(epochs(500, 22) == 10);
  CHECK(epochs(4000, 24) == 4);
  CHECK(epochs(100'000'000, 24) == 4);
  CHECK(epochs(385, 77) == 27);
  CHECK(epochs(10, 10) == 30);
}

TEST_CASE("auto: pairs have the rate of texts, few questions twice it, masked words all of hf") {
  TrainOptions pairs = of_recipe("auto"), questions = pairs, words = pairs;
  pairs.text_pair_column = "hypothesis";
  fill_recipe(pairs, TrainOptions(pairs), {TaskKind::classification, 4000, 384});
  CHECK(*pairs.learning_rate == 1e-4);
  fill_recipe(questions, TrainOptions(questions), {TaskKind::qa, 4000, 384});
  CHECK(*questions.epochs == 3);
  CHECK(*questions.learning_rate == 2e-4);
  TrainOptions many = of_recipe("auto"), base = many;
  fill_recipe(many, TrainOptions(many), {TaskKind::qa, 90'000, 384});
  CHECK(*many.learning_rate == 1e-4);
  fill_recipe(base, TrainOptions(base), {TaskKind::qa, 4000, 768});
  CHECK(*base.learning_rate == 5e-5);
  fill_recipe(words, TrainOptions(words), {TaskKind::mlm, 4000, 384});
  CHECK(*words.learning_rate == *recipe_hf().learning_rate);
}

TEST_CASE("options that a resumed run adopts are not reported as chosen") {
  TrainOptions given = of_recipe("auto"), adopted = given;
  adopted.epochs = 400;
  adopted.learning_rate = 0.002;
  adopted.batch_size = 16;
  const std::string words = fill_recipe(adopted, given, {TaskKind::classification, 600, 384});
  CHECK(words ==
        "recipe auto: batch-size 16, warmup-ratio 0.1, layer-lr-decay 1 (given: epochs "
        "400, lr 0.002)");
  TrainOptions hf = of_recipe("hf");
  TrainOptions filled = with_fixed_recipe(hf);
  CHECK(fill_recipe(filled, hf, {TaskKind::classification, 600, 384})
            .starts_with("recipe hf: epochs 3, batch-size 32, lr 5e-05"));
}

TEST_CASE("chosen and given options are reported") {
  TrainOptions options = of_recipe("auto");
  options.epochs = 2;
  options.batch_size = 8;
  options.warmup_ratio = 0;
  options.layer_lr_decay = 1;
  options.learning_rate = 1e-4;
  CHECK(fill_recipe(options, TrainOptions(options), {TaskKind::classification, 1000, 384}).empty());
  options.learning_rate.reset();
  const std::string words =
      fill_recipe(options, TrainOptions(options), {TaskKind::classification, 1000, 384});
  CHECK(words.starts_with("recipe auto: lr "));
  CHECK(words.ends_with("(given: epochs 2, batch-size 8, warmup-ratio 0, layer-lr-decay 1)"));
}

TEST_CASE("a time budget is filled with steps, or with a fit alone") {
  // 100 steps an epoch of 0.1 s each; an evaluation takes 1 s, a checkpoint 0.5 s.
  RunCosts costs{.spent = 2, .fit = 3, .step = 0.1, .evaluation = 1, .checkpoint = 0.5, .end = 1};
  costs.quick = 5;
  const RunSteps run{.all = 400, .epoch = 100, .evaluate_every = 100, .save_every = 100};
  // 2 + 3 + 40 + 5 evaluations, the one before the first step among them, + 4 checkpoints + 1.
  CHECK(seconds_of(costs, run, 400) == doctest::Approx(53));
  CHECK(seconds_of(costs, run, 101) == doctest::Approx(2 + 3 + 10.1 + 3 + 1 + 1));
  const BudgetChoice whole = choice_within(60, costs, run);
  CHECK(whole.steps == 400);
  CHECK_FALSE(whole.is_quick);
  // 37.2 s: with 3 evaluations and 2 checkpoints more than 200 steps need 31.5 s and 0.1 s a step.
  const BudgetChoice part = choice_within(40, costs, run);
  CHECK(part.steps == 257);
  CHECK(part.seconds <= 0.93 * 40);
  TrainOptions options;
  options.recipe = "auto";
  options.time_budget = "40s";
  CHECK(describe_choice(options, part, run) ==
        "--time-budget 40s: --recipe auto --max-steps 257, 2.6 epochs, about 38s; all 4 epochs "
        "fit into 57s");
  const BudgetChoice quick = choice_within(15, costs, run);
  CHECK(quick.is_quick);
  CHECK(describe_choice(options, quick, run) ==
        "--time-budget 40s: --recipe quick, about 7s; training as well fits into 20s; all 4 "
        "epochs fit into 57s");
  RunSteps one = run;
  one.all = one.epoch;
  CHECK(describe_choice(options, {.steps = 100, .seconds = 21}, one) ==
        "--time-budget 40s: the whole epoch fits, about 21s; more time buys nothing");
  CHECK_THROWS_WITH_AS(choice_within(6, costs, run), doctest::Contains("nothing fits into 6s"),
                       Error);
  // A head that begins at random for its many rows begins as a fit where not all epochs fit.
  RunCosts many = costs;
  many.other_fit = std::exchange(many.fit, 0);
  RunSteps longer = run;
  longer.all = 800;
  longer.all_fitted = 400;
  CHECK_FALSE(choice_within(120, many, longer).fits_head);
  const BudgetChoice shorter = choice_within(60, many, longer);
  CHECK(shorter.fits_head);
  CHECK(shorter.steps == 400);
  CHECK(
      test::contains(describe_choice(options, shorter, longer),
                     "--recipe auto --head-init fit --max-steps 400, 4 epochs, about 53s; all 8 "));
  // Without quick the steps that fit are taken, however few they are.
  costs.quick.reset();
  CHECK(choice_within(10, costs, run).steps == 8);
}

}  // namespace
}  // namespace finetune

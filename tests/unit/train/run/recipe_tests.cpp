// Recipes: the options that they set, and those that they leave.
#include <doctest/doctest.h>

#include "train/recipe/recipe.h"

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

TEST_CASE("the log says where two numbers turned the mix with n-grams off") {
  const auto says = [](const TrainOptions& given) {
    TrainOptions options = given;
    return fill_recipe(options, given, {TaskKind::classification, 1000, 384})
               .find("nothing is mixed with n-grams") != std::string::npos;
  };
  TrainOptions given;
  given.eval_fraction = 0.1;
  given.learning_rate = 1e-4;
  CHECK(!says(given));
  given.epochs = 2;
  CHECK(says(given));
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

TEST_CASE("auto: pairs have the rate of texts, questions hf's epochs, masked words all of hf") {
  TrainOptions pairs = of_recipe("auto"), questions = pairs, words = pairs;
  pairs.text_pair_column = "hypothesis";
  fill_recipe(pairs, TrainOptions(pairs), {TaskKind::classification, 4000, 384});
  CHECK(*pairs.learning_rate == 1e-4);
  fill_recipe(questions, TrainOptions(questions), {TaskKind::qa, 4000, 384});
  CHECK(*questions.epochs == 3);
  CHECK(*questions.learning_rate == 1e-4);
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

}  // namespace
}  // namespace finetune

// The recipes' values, and how they fill options that are not given.
#include "train/recipe/recipe.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/text/text.h"
#include "engine/pooled_weights.h"

namespace finetune {
namespace {

constexpr double kMostRate = 1e-3;
// At a width of 384. Three times as much forgets what pretraining knows of meaning.
constexpr double kRate = 1e-4;
// Answers to fewer than kManySamples questions are learnt sooner and better at twice the rate.
constexpr double kRateOfFewQuestions = 2e-4;
// Epochs fall with the rows of a label, where these are many with the sixth root of all rows.
constexpr double kEpochsOfFew = 222, kEpochsOfMany = 25, kMostEpochsOfMany = 40;
constexpr double kLeastEpochs = 3, kMostEpochs = 30;
constexpr int64_t kManySamples = 20'000, kMostToFit = 50'000;
// A fitted head already knows what the frozen encoder does.
constexpr double kFittedEpochsOfFew = 80, kFittedEpochs = 4;

// Two significant digits: values that people would write.
double rounded(double value) {
  char text[32];
  const auto end = std::to_chars(text, std::end(text), value, std::chars_format::scientific, 1);
  std::from_chars(text, end.ptr, value);
  return value;
}

// Sets those options that have no value to these.
void fill(TrainOptions& options, const RecipeNumbers& values) {
  size_t place = 0;
  for_each_recipe_option(options, [&](std::string_view, auto& option) {
    const double number = *values[place++];
    if (!option) option = std::decay_t<decltype(*option)>(number);
  });
}

}  // namespace

TrainOptions recipe_hf() {
  TrainOptions values;
  values.epochs = 3;
  values.batch_size = 32;
  values.learning_rate = 5e-5;
  values.warmup_ratio = 0.1;
  values.layer_lr_decay = 1;
  return values;
}

namespace {

double epochs_of(const RecipeFacts& facts, double samples) {
  const double labels = double(std::max<int64_t>(2, facts.labels));
  const double few = std::pow(labels / samples, 2.0 / 3);
  const double of_many = std::min(kMostEpochsOfMany, kEpochsOfMany * std::pow(labels, 1.0 / 7));
  const double epochs = facts.fits_head
                            ? std::max(kFittedEpochsOfFew * few, kFittedEpochs)
                            : std::max(kEpochsOfFew * few, of_many / std::pow(samples, 1.0 / 6));
  return std::clamp(std::round(epochs), kLeastEpochs, kMostEpochs);
}

}  // namespace

TrainOptions recipe_auto(const RecipeFacts& facts) {
  TrainOptions values = recipe_hf();
  if (facts.task == TaskKind::mlm) return values;  // nothing better is known
  const double samples = double(std::max<int64_t>(1, facts.samples));
  if (facts.task == TaskKind::classification) {
    values.epochs = epochs_of(facts, samples);
  }
  values.batch_size = facts.samples < kManySamples ? 16 : 32;
  const double width = double(facts.hidden_size) / 384;
  const bool few_questions = facts.task == TaskKind::qa && facts.samples < kManySamples;
  const double rate = few_questions ? kRateOfFewQuestions : kRate;
  values.learning_rate = rounded(std::min(kMostRate, rate / (width * width)));
  return values;
}

TrainOptions recipe_quick(const RecipeFacts& facts) {
  constexpr int64_t kMostSamples = int64_t{1} << 24;
  TrainOptions values;
  values.epochs = 1;
  values.batch_size = std::clamp<int64_t>(facts.samples, 1, kMostSamples);
  values.learning_rate = 0;
  values.warmup_ratio = 0;
  values.layer_lr_decay = 1;
  return values;
}

RecipeFacts recipe_facts(const TrainOptions& options, const Task& task,
                         const EncoderConfig& config) {
  return {task.kind(), task.train_set().samples.size(), config.hidden_size, task.head().outputs,
          resolved_head_init(options, task, config) == "fit"};
}

std::string resolved_head_init(const TrainOptions& options, const Task& task,
                               const EncoderConfig& config) {
  if (task.kind() != TaskKind::classification) return options.head_init;  // theirs are random
  if (is_quick(options)) return "fit";
  const std::string& asked = options.head_init;
  // Numbers are learnt worse from a fit, and of several labels nothing is known.
  const bool is_for_auto = recipe_of(options) == "auto" && has_one_label(options) &&
                           task.train_set().samples.size() < kMostToFit;
  const bool is_wanted = asked == "fit" || (asked == "auto" && is_for_auto);
  if (!is_wanted) return "random";
  const std::string against =
      task.keeps_head()
          ? "--model has a trained head, which is kept; --reinit-head starts a new one"
      : options.reinit ? "--reinit leaves no pretrained encoder; use --head-init random"
      : !can_pass_on(config)
          ? concat("a head of ", config.architecture->class_prefix,
                   " cannot pass on the features of a frozen encoder; use --head-init random")
          : "";
  if (against.empty()) return "fit";
  if (asked == "fit") throw usage_error("--head-init fit: ", against);
  return "random";
}

std::string recipe_of(const TrainOptions& o) {
  if (!o.recipe.empty()) return o.recipe;
  return o.learning_rate && (o.epochs || o.max_steps) ? "hf" : "auto";
}

RecipeNumbers recipe_numbers(TrainOptions options) {
  RecipeNumbers numbers;
  for_each_recipe_option(options, [&](std::string_view, const auto& option) {
    numbers.push_back(option ? std::optional(double(*option)) : std::nullopt);
  });
  return numbers;
}

TrainOptions with_fixed_recipe(TrainOptions options) {
  if (options.recipe == "hf") fill(options, recipe_numbers(recipe_hf()));
  return options;
}

std::string warning_of_lost_mix(const TrainOptions& options, const TrainOptions& given,
                                TaskKind task) {
  if (!given.recipe.empty() || options.recipe != "hf" || task != TaskKind::classification)
    return "";
  TrainOptions as_auto = options;
  as_auto.recipe = "auto";
  if (!is_evaluated(options) || mixes_with_ngrams(options) || !mixes_with_ngrams(as_auto))
    return "";
  return concat(
      "warning: --lr and --", options.max_steps ? "max-steps" : "epochs",
      " together choose --recipe hf, which mixes in no n-grams; add --recipe auto to mix");
}

std::string fill_recipe(TrainOptions& options, const TrainOptions& given,
                        const RecipeFacts& facts) {
  options.recipe = recipe_of(options);
  if (is_quick(options)) {
    options.batch_size.reset();  // all rows at once, whatever an older run had
    fill(options, recipe_numbers(recipe_quick(facts)));
    return "";
  }
  const RecipeNumbers values =
      recipe_numbers(options.recipe == "hf" ? recipe_hf() : recipe_auto(facts));
  const RecipeNumbers before = recipe_numbers(options), by_user = recipe_numbers(given);
  fill(options, values);
  std::vector<std::string> filled, own;
  size_t place = 0;
  const auto is_overruled = [&](std::string_view name) {
    return (name == "epochs" && options.max_steps) ||
           (name == "warmup-ratio" && options.warmup_steps);
  };
  for_each_recipe_option(options, [&](std::string_view name, const auto& option) {
    const bool is_recipes = !by_user[place] && (!before[place] || before[place] == values[place]);
    if (!is_recipes || !is_overruled(name)) {
      (is_recipes ? filled : own).push_back(concat(name, " ", *option));
    }
    ++place;
  });
  if (filled.empty()) return "";
  return concat("recipe ", options.recipe, ": ", join(filled, ", "),
                own.empty() ? "" : concat(" (given: ", join(own, ", "), ")"));
}

std::string level_of(const TrainOptions& options, const RecipeFacts& facts) {
  if (options.recipe != "auto" || facts.task != TaskKind::classification) return "";
  if (facts.fits_head) {
    return "recipe: a head is fitted to the frozen encoder, then all weights are trained, which "
           "helps on most data; --recipe quick stops after the fit; more epochs help little";
  }
  if (!has_one_label(options) || facts.samples < kMostToFit) return "";
  return concat("recipe: all weights are trained, without a fit, since there are ", kMostToFit,
                " rows and more; --recipe quick stops after a fit; more epochs help little");
}

}  // namespace finetune

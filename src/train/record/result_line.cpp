// Puts a run's identity and its metrics into one JSON object.
#include "train/record/result_line.h"

#include <algorithm>
#include <string_view>
#include <type_traits>

#include "core/text/json_value.h"
#include "core/text/printable.h"
#include "core/text/text.h"
#include "train/options/option_values.h"
#include "train/options/option_words.h"
#include "train/recipe/recipe.h"
#include "train/run/metrics_files.h"

namespace finetune {
namespace {

bool has_its_own_member(std::string_view name) {
  return name == "output" || name == "task" || name == "seed";
}

}  // namespace

std::vector<ConfigItem> options_given(const TrainOptions& options) {
  const std::vector<ConfigItem> defaults = config_items(TrainOptions());
  std::vector<ConfigItem> given;
  for (ConfigItem& item : config_items(options)) {
    const bool is_default =
        std::any_of(defaults.begin(), defaults.end(), [&](const ConfigItem& other) {
          return other.name == item.name && other.value == item.value;
        });
    if (!is_default && !has_its_own_member(item.name)) given.push_back(std::move(item));
  }
  return given;
}

TrainOptions with_cut_of(TrainOptions options, const std::vector<ConfigEntry>& config) {
  const auto take = [&](std::optional<int64_t>& own, std::string_view name, int64_t unsaid) {
    if (own) return;
    own = parse_int(first_value(config, name));
    if (own == unsaid) own.reset();
  };
  take(options.virtual_shards, "virtual-shards", 1);
  take(options.micro_batches, "micro-batches", 0);
  take(options.tensor_shards, "tensor-shards", 1);
  return options;
}

TrainOptions with_recipe_of(TrainOptions options, const std::vector<ConfigEntry>& config) {
  const auto value = [&](std::string_view name) { return first_value(config, name); };
  std::string recipe = value("recipe");
  if (recipe.empty()) recipe = "hf";  // from before recipes existed
  if (recipe == "hf") {
    const RecipeNumbers usual = recipe_numbers(recipe_hf());
    size_t place = 0;
    for_each_recipe_option(options, [&](std::string_view name, auto& own) {
      using Number = std::remove_reference_t<decltype(*own)>;
      const double number = *usual[place++];
      const auto kept = number_in_word<Number>(value(name));
      if (!own && kept && double(*kept) != number) own = kept;
    });
  }
  if (!value("time-budget").empty() && !options.epochs && !options.max_steps) {
    options.max_steps = parse_int(value("max-steps"));  // the length chosen for the budget
    if (options.max_steps) options.recipe = recipe;
    if (options.max_steps && options.head_init == "auto") options.head_init = value("head-init");
    if (options.head_init.empty()) options.head_init = "auto";
  }
  options.time_budget.clear();
  if (recipe_of(options) != recipe) options.recipe = recipe;
  return options;
}

std::string result_line(const RunIdentity& run, const std::map<std::string, double>& metrics,
                        std::string_view more) {
  JsonObject object, options;
  if (!run.output.empty()) object.add("output", run.output);
  object.add("task", run.task);
  if (run.seed) object.add("seed", *run.seed);
  object.add("weights_sha256", run.weights_sha256);
  for (const auto& [name, value] : run.facts) {
    if (!value.empty()) object.add(name, value);
  }
  for (const ConfigItem& item : run.options) {
    std::visit([&](const auto& value) { options.add(item.name, value); }, item.value);
  }
  object.add("options", options);
  std::string line = object.text();
  const std::string numbers = json_line(NamedNumbers(metrics.begin(), metrics.end()));
  if (numbers.size() > 2) {
    line.back() = ',';
    line += numbers.substr(1);
  }
  if (!more.empty()) {
    line.back() = ',';
    line += concat(more, "}");
  }
  return printable_json(line) + "\n";
}

}  // namespace finetune

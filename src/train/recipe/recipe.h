// Recipes: what epochs, batch size, learning rate and their like are where nobody gives them.
// `hf` has the defaults of Hugging Face's examples, whatever the data. `auto` chooses by the number
// of samples and labels and by the model's width; docs/quality.md has what that was found by.
// `quick` trains nothing but a linear head on the frozen encoder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/config.h"
#include "tasks/task.h"
#include "train/options/options.h"

namespace finetune {

// What a recipe looks at.
struct RecipeFacts {
  TaskKind task = TaskKind::classification;
  int64_t samples = 0;  // of training: rows, or windows of questions
  int64_t hidden_size = 0;
  int64_t labels = 2;  // of classification; numbers count as two
  bool fits_head = false;
};
// `options`: the recipe and --head-init as they were given, or resolved.
RecipeFacts recipe_facts(const TrainOptions& options, const Task& task,
                         const EncoderConfig& config);

// --head-init of a run: fit or random; of another task than classification as it was given. `auto`
// fits a new head where the recipe is quick, or auto with one label a row and few samples, and the
// encoder's head can pass features on. Error(usage) for a fit that is asked for and cannot be.
std::string resolved_head_init(const TrainOptions& options, const Task& task,
                               const EncoderConfig& config);

// Options of which the recipe's are set, and no others.
TrainOptions recipe_hf();
TrainOptions recipe_auto(const RecipeFacts& facts);
// One step over all rows, in which nothing but the head is fitted (train/quick/quick_start.h).
TrainOptions recipe_quick(const RecipeFacts& facts);

// Calls visit(name, member&) for each option that a recipe decides.
template <typename Visit>
void for_each_recipe_option(TrainOptions& options, Visit visit) {
  visit("epochs", options.epochs);
  visit("batch-size", options.batch_size);
  visit("lr", options.learning_rate);
  visit("warmup-ratio", options.warmup_ratio);
  visit("layer-lr-decay", options.layer_lr_decay);
}

// The values of the recipe's options, in the order of for_each_recipe_option; none if not given.
using RecipeNumbers = std::vector<std::optional<double>>;
RecipeNumbers recipe_numbers(TrainOptions options);

// The recipe of options that are not filled: who gives the learning rate and the run's length but
// no recipe has one of his own, and the rest is Hugging Face's; who gives less has `auto`.
std::string recipe_of(const TrainOptions& options);

// Fills what is not given where `hf` is, since that needs no data; else nothing.
TrainOptions with_fixed_recipe(TrainOptions options);

// Fills what is left, the recipe's name too; with_fixed_recipe() may have begun with what is in
// `given`. A line for the log, "recipe auto: epochs 10, lr 5e-4
// (given: batch-size 16)"; empty where nothing was left.
std::string fill_recipe(TrainOptions& options, const TrainOptions& given, const RecipeFacts& facts);

// A warning if the numbers that were given have chosen `hf`, where `auto` would mix in n-grams;
// else
// "". `options` is filled.
std::string warning_of_lost_mix(const TrainOptions& options, const TrainOptions& given,
                                TaskKind task);

// A line for the log: what `auto` trains of a classifier with one label a row, why, and what more
// time would buy. Empty for others.
std::string level_of(const TrainOptions& options, const RecipeFacts& facts);

}  // namespace finetune

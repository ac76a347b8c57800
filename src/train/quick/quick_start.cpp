// The options that --recipe quick takes, and the configuration of its model.
#include "train/quick/quick_start.h"

#include <algorithm>
#include <tuple>

#include "core/error.h"
#include "core/text/counted.h"
#include "core/text/text.h"
#include "engine/pooled_weights.h"
#include "train/recipe/recipe.h"

namespace finetune {
namespace {

// With fewer rows of each label the fit is more accurate than training after it (docs/quality).
constexpr int64_t kFewRowsOfLabel = 10;
// Too few to choose a mix and a temperature by.
constexpr int64_t kFewEvaluationRows = 200;

}  // namespace

void require_quick_options(const TrainOptions& given) {
  if (!is_quick(given) && given.pooling != "auto") {
    throw usage_error("--pooling ", given.pooling,
                      " is for --recipe quick: transformers has no head that reads the mean, and a "
                      "trained one reads the first token as well; leave it out");
  }
  if (!is_quick(given)) return;
  const TrainOptions defaults, own = recipe_quick({});
  const auto refuse = [](std::string_view option, std::string_view why) {
    throw usage_error("--", option, " is not for --recipe quick, ", why, "; use --recipe auto");
  };
  constexpr std::string_view kFit = "which fits a linear head without training steps";
  if (given.epochs.value_or(1) != *own.epochs) refuse("epochs", kFit);
  if (given.max_steps.value_or(1) != 1) refuse("max-steps", kFit);
  if (given.learning_rate.value_or(0) != *own.learning_rate) refuse("lr", kFit);
  if (given.warmup_ratio.value_or(0) != *own.warmup_ratio) refuse("warmup-ratio", kFit);
  if (given.warmup_steps.value_or(0) != 0) refuse("warmup-steps", kFit);
  if (given.layer_lr_decay.value_or(1) != 1) refuse("layer-lr-decay", kFit);
  if (given.dropout.value_or(0) != 0) refuse("dropout", kFit);
  if (given.batch_size) refuse("batch-size", kFit);
  if (given.micro_batches) refuse("micro-batches", kFit);
  if (given.schedule != defaults.schedule) refuse("schedule", kFit);
  for (const auto& [name, value, usual] :
       {std::tuple("weight-decay", given.weight_decay, defaults.weight_decay),
        {"adam-beta1", given.adam_beta1, defaults.adam_beta1},
        {"adam-beta2", given.adam_beta2, defaults.adam_beta2},
        {"adam-epsilon", given.adam_epsilon, defaults.adam_epsilon},
        {"max-grad-norm", given.max_grad_norm, defaults.max_grad_norm}}) {
    if (value != usual) refuse(name, kFit);
  }
  for (const auto& [name, is_given] :
       {std::pair("no-shuffle", given.no_shuffle),
        {"recompute", given.recompute},
        {"offload-activations", given.offload_activations.has_value()},
        {"eval-every", given.eval_every.has_value()},
        {"save-every", given.save_every.has_value()},
        {"shard-optimizer", given.shard_optimizer},
        {"early-stopping", given.early_stopping != 0}}) {
    if (is_given) refuse(name, kFit);
  }
  if (given.freeze != defaults.freeze) refuse("freeze", "which freezes the whole encoder");
  if (given.head_init == "random") refuse("head-init random", "which fits the head");
  if (given.reinit) refuse("reinit", "which needs a pretrained encoder");
  for (const auto& [name, value] :
       {std::pair("pp", given.pp), {"tp", given.tp}, {"tensor-shards", given.tensor_shards}}) {
    if (value.value_or(1) != 1) refuse(name, "whose processes each have the whole encoder");
  }
}

bool can_be_quick(const TrainOptions& options, const Task& task, const EncoderConfig& config) {
  if (task.kind() != TaskKind::classification || task.keeps_head() || !can_pass_on(config) ||
      recipe_of(options) != "auto") {
    return false;
  }
  TrainOptions quick = options;
  quick.recipe = kQuickWord;
  try {
    require_quick_options(quick);
  } catch (const Error&) {
    return false;
  }
  return true;
}

bool takes_quick(const TrainOptions& options, const Task& task, const EncoderConfig& config) {
  const RecipeNumbers given = recipe_numbers(options);
  const bool is_free =
      std::none_of(given.begin(), given.end(), [](auto n) { return n.has_value(); });
  if (!is_free || options.max_steps || options.warmup_steps) return false;
  if (!can_be_quick(options, task, config) || !has_one_label(options)) return false;
  return task.train_set().samples.size() < kFewRowsOfLabel * task.head().outputs;
}

std::string line_of_quick(int64_t samples, int64_t labels) {
  return concat(
      "recipe: quick, a head is fitted to the frozen encoder and nothing is trained, since ",
      counted(samples, "row"), " are fewer than ", kFewRowsOfLabel, " for each of ", labels,
      " labels; --epochs trains all weights");
}

std::string advice_on_folds(const TrainOptions& options, int64_t eval_rows) {
  if (!is_quick(options) || options.folds || eval_rows >= kFewEvaluationRows) return "";
  if (options.max_eval_samples || options.long_text != TrainOptions().long_text) return "";
  return concat(
      "--recipe quick --folds 5 ",
      eval_rows == 0 ? "" : concat("instead of ", counted(eval_rows, "evaluation row"), " "),
      "measures each row by a fit that has not seen it",
      mixes_with_ngrams(options) ? ", and uses all of them to mix with n-grams and calibrate" : "");
}

namespace {

PoolingChoice choice_named(std::string_view word) {
  if (word == "auto") return PoolingChoice::automatic;
  return word == "cls" ? PoolingChoice::first : PoolingChoice::mean;
}

}  // namespace

EncoderConfig config_of_run(const TrainOptions& options, const EncoderConfig& config,
                            const std::filesystem::path& directory) {
  if (is_quick(options)) return with_pooling(config, directory, choice_named(options.pooling));
  if (pooling_of(config) == Pooling::mean && options.task == "mlm") {
    throw usage_error("--model ", directory.string(),
                      ": its last layer pools for a linear head (--recipe quick), and words cannot "
                      "be guessed from it; give adapt the pretrained model");
  }
  return without_pooling(config);
}

}  // namespace finetune

// Compares a run's stored options and data with the given ones, for --resume.
#include "train/resume.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>

#include "core/error.h"
#include "core/files/files.h"
#include "core/log.h"
#include "core/text/printable.h"
#include "train/checkpoint/sealed_file.h"
#include "train/options/config_file.h"
#include "train/options/option_values.h"
#include "train/options/option_words.h"
#include "train/options/table/option_table.h"
#include "train/recipe/recipe.h"
#include "train/run/metrics_files.h"

namespace finetune {
namespace {

Error damaged(const std::string& where, std::string_view fault) {
  return model_error(where, ": its options are damaged: ", printable(fault, 300));
}

// Whether the stored value is possible for the option.
bool can_be(const OptionInfo& info, OptionKind kind, const ConfigEntry& kept) {
  if (kind == OptionKind::list) return true;
  if (kept.is_array) return false;
  const std::string& word = kept.values[0];
  switch (kind) {
    case OptionKind::flag:
      return word == "true" || word == "false";
    case OptionKind::number:
      return parse_double(word).has_value();
    case OptionKind::whole_number:
      return parse_int(word).has_value();
    default:
      break;
  }
  if (info.name != "task" && info.name != "precision") return true;
  const std::vector<std::string_view> words = split(info.words, '|');
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Anyone can compute the checksum in a seal, so the options may have values of any kind.
std::vector<ConfigEntry> read_kept(const std::string& kept, const std::string& where) {
  std::vector<ConfigEntry> entries = parse_config_text(kept, where, ExitCode::model);
  for (const TrainOption& option : train_options()) {
    for (const ConfigEntry& entry : entries) {
      if (entry.name != option.info.name) continue;
      if (can_be(option.info, kind_of_option(entry.name), entry)) continue;
      throw damaged(where, concat(entry.name, " is ", in_quotes(join(entry.values, ", "))));
    }
  }
  add_values_of_before(entries);
  return entries;
}

// Takes over what the recipe decided; it would decide the same for the same data and model.
void adopt_recipe(TrainOptions& options, const std::vector<ConfigEntry>& kept,
                  std::vector<std::string>& adopted) {
  for (const ConfigEntry& entry : kept) {
    if (entry.name == "recipe" && entry.values != std::vector{options.recipe}) return;
  }
  for_each_recipe_option(options, [&](std::string_view name, auto& option) {
    const std::string word = option ? "" : first_value(kept, name);
    if (word.empty()) return;
    adopted.emplace_back(name);
    option = number_in_word<std::remove_reference_t<decltype(*option)>>(word);
  });
}

std::vector<std::string> adopt(TrainOptions& options, const std::vector<ConfigEntry>& kept) {
  std::vector<std::string> adopted;
  auto value = [&](std::string_view name) {
    std::string word = first_value(kept, name);
    if (!word.empty()) adopted.emplace_back(name);
    return word;
  };
  auto adopt_number = [&](std::optional<int64_t>& own, std::string_view name) {
    if (!own) own = parse_int(value(name));
  };
  if (options.time_budget.empty()) options.time_budget = value("time-budget");
  const bool had_budget = !first_value(kept, "time-budget").empty();
  if (had_budget && !options.epochs && !options.max_steps) {  // the budget set the length
    adopt_number(options.max_steps, "max-steps");
    if (options.recipe == "auto") options.recipe = value("recipe");
  }
  if (options.task.empty()) options.task = value("task");
  if (options.precision == "auto") options.precision = value("precision");
  if (options.ngram_mix == "auto") options.ngram_mix = value("ngram-mix");
  if (options.head_init == "auto") options.head_init = value("head-init");
  if (options.recipe.empty()) options.recipe = value("recipe");
  adopt_number(options.max_length, "max-length");
  adopt_recipe(options, kept, adopted);
  // A run has one of the two. If the other one is given, that is reported as a difference.
  if (!options.micro_batch_tokens) adopt_number(options.micro_batches, "micro-batches");
  if (!options.micro_batches) adopt_number(options.micro_batch_tokens, "micro-batch-tokens");
  adopt_number(options.virtual_shards, "virtual-shards");
  adopt_number(options.tensor_shards, "tensor-shards");
  std::string best_metric = value("best-metric");
  if (options.best_metric.empty() || concat("eval_", options.best_metric) == best_metric) {
    options.best_metric = best_metric;
  }
  return adopted;
}

// Paths may differ, since contents are compared by their SHA-256. The SHA-256 is over all files in
// one order, so the number of training files decides which files are for training.
void compare_file_counts(const std::vector<ConfigEntry>& there, const TrainOptions& now,
                         std::vector<std::string>& differences) {
  for (const auto& [name, files] : {std::pair("train", &now.train), {"eval", &now.eval}}) {
    size_t kept = 0;
    for (const ConfigEntry& entry : there) {
      if (entry.name == name) kept = entry.values.size();
    }
    if (kept == files->size()) continue;
    differences.push_back(
        concat("number of ", name, " files (", kept, " there, ", files->size(), " now)"));
  }
}

std::vector<std::string> differences_from(const std::vector<ConfigEntry>& there,
                                          const TrainOptions& options) {
  const auto now = parse_config_text(write_config(config_items(options), ""), "the command line");
  std::vector<std::string> differences = config_differences(there, now, result_option_names());
  compare_file_counts(there, options, differences);
  return differences;
}

}  // namespace

std::vector<std::string> option_differences(TrainOptions options, const std::string& kept,
                                            const std::string& kept_where) {
  const std::vector<ConfigEntry> there = read_kept(kept, kept_where);
  adopt(options, there);
  return differences_from(there, options);
}

std::vector<std::string> continue_with_options(TrainOptions& options, const std::string& kept,
                                               const std::string& kept_where) {
  const std::vector<ConfigEntry> there = read_kept(kept, kept_where);
  std::vector<std::string> adopted = adopt(options, there);
  const std::vector<std::string> differences = differences_from(there, options);
  if (!differences.empty()) {
    throw usage_error("--resume: options differ from those of ", kept_where, ": ",
                      join(differences, ", "), "; give the run's own, or start another --output");
  }
  try {
    validate(options);  // they were valid before
  } catch (const Error& error) {
    throw damaged(kept_where, error.what());
  }
  return adopted;
}

std::optional<FoundCheckpoint> checkpoint_to_continue(const RunDirectory& directory) {
  auto found = newest_valid_checkpoint(directory.checkpoints());
  if (!found) return found;
  CheckpointState& state = found->state;
  if (state.best_step < 0 || state.best_step == state.step) return found;
  try {
    verify_seal(checkpoint_path(directory.checkpoints(), state.best_step));
  } catch (const Error& error) {
    if (error.code() == ExitCode::device) throw;
    warn(error.what(), "; it was the best model so far: the search for the best starts over");
    state.best_step = -1;
    state.best_value = std::numeric_limits<double>::quiet_NaN();
    state.evaluations_without_improvement = 0;
    // This step is evaluated again. The results of earlier evaluations are kept.
    if (const auto last = state.totals.find("evaluated"); last != state.totals.end()) {
      last->second = std::min(last->second, double(state.step - 1));
    }
  }
  return found;
}

std::string named_loss(const TrainOptions& options) {
  const bool both = options.class_weights != "none" && options.label_smoothing != 0;
  return both ? "smoothed loss times the row's own class weight" : "";
}

void require_same_loss(const TrainOptions& options, const FoundCheckpoint& found) {
  if (found.state.loss == named_loss(options)) return;
  throw usage_error("--resume: ", found.file.path.string(),
                    " is from a version of finetune with another loss for --class-weights together "
                    "with --label-smoothing; start another --output, or --overwrite this one");
}

std::vector<std::string> continue_from(const FoundCheckpoint& found, TrainOptions& options) {
  auto adopted = continue_with_options(options, found.state.options, found.file.path.string());
  require_same_loss(options, found);
  return adopted;
}

std::vector<Assertion> finished_assertions(const RunDirectory& directory,
                                           const TrainOptions& options) {
  TrainOptions kept = options;
  kept.ngram_mix = "auto";  // takes the run's value
  continue_with_options(kept, read_text_file(directory.config(), ExitCode::model),
                        directory.config().string());
  if (options.ngram_mix != "auto" && mixes_with_ngrams(options) != mixes_with_ngrams(kept)) {
    throw usage_error("--resume: the run in ", directory.path().string(), " has ended ",
                      mixes_with_ngrams(kept) ? "with" : "without",
                      " a mix with n-grams; leave --ngram-mix out, or start another --output");
  }
  std::vector<std::string> available;
  for (const auto& metric : read_metrics(directory.metrics(), ExitCode::model))
    available.push_back(metric.first);
  return read_assertions(options, available);
}

void take_finished_sums(const RunDirectory& directory, CheckpointState& state) {
  const fs::path path = directory.facts();
  if (path_exists(path, ExitCode::model)) {
    for (const auto& [name, value] : read_facts(path)) {
      if (name == "data_sha256") state.data_sha256 = value;
      if (name == "model_sha256") state.model_sha256 = value;
    }
  }
  if (!state.data_sha256.empty() && !state.model_sha256.empty()) return;
  throw model_error(path.string(),
                    ": is missing or names no data_sha256 and model_sha256: nothing ",
                    "tells what the finished run was trained on; start another --output");
}

void blame_checkpoint(const Error& error, const fs::path& checkpoint,
                      const std::vector<std::string>& adopted) {
  if (error.code() != ExitCode::usage) return;
  const std::string_view message = error.what();
  for (const std::string& name : adopted) {
    if (message.starts_with(concat("--", name, " "))) {
      throw model_error(checkpoint.string(), ": its options are damaged: ", message);
    }
  }
}

std::vector<Assertion> read_assertions(const TrainOptions& options,
                                       const std::vector<std::string>& available) {
  return gates_of(options.assertions, options.baselines, options.tolerances, available);
}

std::string device_of(std::string_view code_path) {
  return code_path.starts_with("CUDA") ? "cuda" : "cpu";
}

void describe_continuation(const fs::path* checkpoint, const CheckpointState& state,
                           const std::string& code_path) {
  if (!checkpoint) return log("--resume: no checkpoint yet, starting from the beginning");
  log("continuing from ", checkpoint->string(), ", step ", state.step);
  if (state.code_path.empty() || state.code_path == code_path) return;
  warn("--resume: the run was computed with ", printable(state.code_path, 100),
       " so far, now with ", code_path, ": the result is not that of an undisturbed run");
}

}  // namespace finetune

// Adds the options of evaluate, predict and next, which override the model's options.
#include "cli/options/answer_options.h"

#include <algorithm>

#include "cli/options/option_binding.h"
#include "core/error.h"
#include "tasks/registry.h"
#include "train/options/options.h"
#include "train/options/table/option_table.h"

namespace finetune {
namespace {

using InferenceRow = OptionRow<InferenceOptions>;

const InferenceRow kInferenceRows[] = {
    {{.name = "no-calibration",
      .group = "Model",
      .tasks = kLabels,
      .help = "the model's own probabilities: no fitted temperature, thresholds or mix"},
     &InferenceOptions::no_calibration},
    {{.name = "no-ngram-mix",
      .group = "Model",
      .tasks = kLabels,
      .help = "the model alone, without the n-grams that it was mixed with"},
     &InferenceOptions::no_ngram_mix},
    {{.name = "batch-size",
      .group = "Machine",
      .help = "most sequences computed at once (default: 512)",
      .range = at_least(1)},
     &InferenceOptions::batch_size},
};

// Allows `auto` for every task, so that a script may always give it.
void require_options_of(TaskKind task, const AnswerOptions& o) {
  for (const GivenOption& option : o.given) {
    if (!is_foreign(*option.info, task) || option.value == OptionValue("auto")) continue;
    throw usage_error("--", option.info->name, " is for ", traits_of(*task_of(*option.info)).title,
                      "; ", o.inference.model, " was trained for ", traits_of(task).title);
  }
}

void require_windows(const AnswerOptions& o, const TaskOptions& options) {
  if (options.long_texts.in_windows) return;
  for (const char* name : {"window-stride", "max-windows"}) {
    if (!is_given(o, name)) continue;
    throw usage_error("--", name, " is for --long-text windows; ", o.inference.model,
                      " cuts long texts");
  }
}

}  // namespace

void add_model_option(Subcommand subcommand, Commands command, AnswerOptions& o) {
  const TrainOption& model = *find_train_option("model");
  add_option(subcommand, model.info, model.in(o.shared), {.command = command});
}

void add_answer_options(Subcommand subcommand, Commands command, AnswerOptions& o) {
  add_options(subcommand, kInferenceRows, o.inference);
  for (const TrainOption& row : train_options()) {
    if ((row.info.commands & command) == 0 || row.info.name == "model") continue;
    add_option(subcommand, row.info, row.in(o.shared), {.command = command});
  }
}

void take_answer_options(Subcommand subcommand, AnswerOptions& o) {
  const TrainOptions& s = o.shared;
  InferenceOptions& i = o.inference;
  append_given(subcommand, train_options(), s, o.given);
  append_given(subcommand, kInferenceRows, i, o.given);
  i.model = s.model;
  i.precision = s.precision;
  i.device = s.device;
  i.threads = s.threads.value_or(0);
  i.tensor_shards = s.tensor_shards;
  i.tp = s.tp;
  i.pp = s.pp;
  i.placement = s.placement;
  i.stages = s.stages;
  i.comm_timeout = comm_timeout_seconds(s);
}

bool is_given(const AnswerOptions& o, std::string_view name) {
  return std::any_of(o.given.begin(), o.given.end(),
                     [&](const GivenOption& option) { return option.info->name == name; });
}

std::string given_column_option(const AnswerOptions& o) {
  for (const char* name : {"text-column", "text-pair-column"}) {
    if (is_given(o, name)) return concat("--", name);
  }
  return "";
}

FineTuned open_fine_tuned(const AnswerOptions& o, TaskOptions* own) {
  return open_fine_tuned(o.inference, [&](TaskKind task, TaskOptions& trained) {
    if (own != nullptr) *own = trained;
    require_options_of(task, o);
    require_encoding(o.shared.encoding);
    apply_given(o.given, o.shared, trained);
    require_windows(o, trained);
  });
}

}  // namespace finetune

// Options that evaluate, predict and next share, most of them with train.
#pragma once

#include <string>
#include <vector>

#include "cli/parser.h"
#include "inference/fine_tuned_model.h"
#include "train/options/option_row.h"
#include "train/options/train_options.h"

namespace finetune {

struct AnswerOptions {
  TrainOptions shared;  // only the options of train whose rows name the command
  InferenceOptions inference;
  std::vector<GivenOption> given;
};

// `command`: evaluate, predict or next. The command adds its own rows between --model and the rest,
// so that required options come first in --help.
void add_model_option(Subcommand subcommand, Commands command, AnswerOptions& options);
void add_answer_options(Subcommand subcommand, Commands command, AnswerOptions& options);
// After parsing: fills `given`, and `inference` from the shared options.
void take_answer_options(Subcommand subcommand, AnswerOptions& options);

bool is_given(const AnswerOptions& options, std::string_view name);
// The given option that names a column of the texts, "--text-column", or "".
std::string given_column_option(const AnswerOptions& options);

// Opens the model. Given options replace the options that it was trained with. Error(usage) for an
// option of another task than the model's.
// `own`, if given, gets the options that the model was trained with.
FineTuned open_fine_tuned(const AnswerOptions& options, TaskOptions* own = nullptr);

}  // namespace finetune

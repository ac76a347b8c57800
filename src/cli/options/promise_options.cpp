// Refuses a promise based on rows that the model's run has read, and stores promises.
#include "cli/options/promise_options.h"

#include "cli/output/output_file.h"
#include "core/error.h"
#include "core/files/file_kind.h"
#include "core/files/files.h"
#include "core/files/text_file.h"
#include "core/log.h"
#include "engine/export_model.h"
#include "model/architecture.h"
#include "train/record/card_lines.h"
#include "train/run/fingerprint.h"
#include "train/run/metrics_files.h"
#include "weights/model_directory.h"
#include "weights/weights.h"

namespace finetune {
namespace {

// Returns the data_sha256 of the model's facts; empty if the model has none.
std::string data_sum_of(const FineTuned& model) {
  const fs::path facts = model.model.directory.directory / kModelFactsFile;
  if (!path_exists(facts, ExitCode::model)) return "";
  return fact_named(read_facts(facts), "data_sha256");
}

void require_other_files(const std::vector<InputFile>& data, const std::vector<InputFile>& used,
                         const char* what) {
  for (const InputFile& file : used) {
    for (const InputFile& own : data) {
      if (!is_same_file(file.name.string(), own.name.string())) continue;
      throw usage_error("--max-error: ", own.name.string(), " ", what,
                        "; a promise needs rows that the model has not seen");
    }
  }
}

void require_other_data(const std::vector<InputFile>& data, const FineTuned& model) {
  const std::string used = data_sum_of(model);
  const auto require = [&](const std::vector<InputFile>& files) {
    if (used.empty() || Fingerprint(files).result() != used) return;
    throw usage_error("--max-error: ", files.front().name.string(),
                      " has the checksum of the data that the model was trained on (",
                      kModelFactsFile, "); a promise needs rows that the model has not seen");
  };
  for (const InputFile& file : data) require({file});
  if (data.size() > 1) require(data);
}

// Whether both are one file, or files of the same bytes.
bool is_same_data(const InputFile& a, const InputFile& b) {
  if (is_same_file(a.name.string(), b.name.string())) return true;
  std::error_code error;
  const auto bytes = [&](const InputFile& file) {
    return fs::is_regular_file(file.content, error) ? fs::file_size(file.content, error) : 0;
  };
  const auto size = bytes(a);
  return size > 0 && size == bytes(b) && Fingerprint({a}).result() == Fingerprint({b}).result();
}

}  // namespace

PromisedModel promised_model(const FineTuned& model) {
  const ModelDirectory& directory = model.model.directory;
  return {directory.directory, directory.config,
          open_weights(directory.weights, model.model.config.architecture->names)->files(),
          find_tokenizer_files(directory.directory), answers_in_words(model.options)};
}

void require_fresh_rows(const std::vector<InputFile>& data, const FineTuned& model,
                        const TrainingRowsOfModel& of_run) {
  if (of_run.options) {
    require_other_files(data, of_run.options->train_files, "was trained on");
    require_other_files(data, of_run.options->eval_files,
                        "chose the model's epoch and calibration (--eval)");
  }
  require_other_data(data, model);
  if (of_run.options) return;
  warn("--max-error: whether the model has seen rows of --data could not be checked: ", of_run.why,
       "; --train names the rows of training");
}

std::string use_of_rows(const std::vector<InputFile>& data, const FineTuned& model,
                        const TrainingRowsOfModel& of_run) {
  const bool is_mixed = model.options.mix && model.options.uses_mix;
  if (!of_run.options || !(is_mixed || of_run.chose_best_step)) return "";
  const std::string metrics =
      (model.model.directory.directory.parent_path() / "metrics.json").string();
  for (const InputFile& used : of_run.options->eval_files) {
    for (const InputFile& own : data) {
      if (!is_same_data(used, own)) continue;
      return concat(
          own.name.string(), of_run.chose_best_step ? " chose this model's best epoch" : "",
          of_run.chose_best_step && is_mixed ? " and" : "",
          is_mixed ? " fitted its mix with n-grams" : "", ": these figures are a little too good",
          !is_mixed                ? ""
          : of_run.chose_best_step ? concat("; in ", metrics, " only by the epoch")
                                   : concat("; not in ", metrics));
    }
  }
  return "";
}

std::vector<InputFile> files_of_run(const FineTuned& model) {
  const auto rows = training_rows_of(model.model.directory.directory).options;
  if (!rows) return {};
  std::vector<InputFile> files = rows->train_files;
  files.insert(files.end(), rows->eval_files.begin(), rows->eval_files.end());
  return files;
}

namespace {

// Without its card the promise is valid too, so a failure is a warning.
void tell_card(const fs::path& directory, std::string_view promise) try {
  const fs::path card = directory / kModelCardFile;
  if (!path_exists(card, ExitCode::model)) return;
  const std::string text = read_text_file(card, ExitCode::model);
  if (std::string changed = with_promise(text, promise); changed != text) write_file(card, changed);
} catch (const Error& error) {
  warn("the model's card does not tell the promise: ", error.what());
}

}  // namespace

ExitCode keep_promise(const FineTuned& model, const std::optional<Promise>& promise) {
  if (!promise) return ExitCode::done;
  const fs::path& directory = model.model.directory.directory;
  const bool is_made = promise->threshold.has_value();
  if (is_made)
    write_promise(promised_model(model), *promise);
  else
    remove_promise(directory);
  tell_card(directory, is_made ? promise_in_words(*promise) : "");
  return is_made ? ExitCode::done : ExitCode::assertion;
}

}  // namespace finetune

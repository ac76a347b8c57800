// Compares the files of a promise with those of the model's run.
#include "cli/options/promise_options.h"

#include "cli/output/output_file.h"
#include "core/error.h"
#include "core/files/files.h"
#include "core/log.h"
#include "engine/export_model.h"
#include "model/architecture.h"
#include "train/run/fingerprint.h"
#include "train/run/metrics_files.h"
#include "weights/model_directory.h"
#include "weights/weights.h"

namespace finetune {
namespace {

// Empty if the model has none.
std::string data_sum_of(const FineTuned& model) {
  const fs::path facts = model.model.directory.directory / kModelFactsFile;
  if (!path_exists(facts, ExitCode::model)) return "";
  return fact_named(read_facts(facts), "data_sha256");
}

}  // namespace

PromisedModel promised_model(const FineTuned& model) {
  const ModelDirectory& directory = model.model.directory;
  return {directory.directory, directory.config,
          open_weights(directory.weights, model.model.config.architecture->names)->files(),
          find_tokenizer_files(directory.directory), answers_in_words(model.options)};
}

void require_fresh_rows(const std::vector<std::string>& data,
                        const std::optional<TaskOptions>& of_run) {
  if (!of_run) return;
  const auto require = [&](const std::vector<InputFile>& used, const char* what) {
    for (const InputFile& file : used) {
      for (const std::string& own : data) {
        if (!is_same_file(file.name.string(), own)) continue;
        throw usage_error("--max-error: ", own, " ", what,
                          "; a promise needs rows that the model has not seen");
      }
    }
  };
  require(of_run->train_files, "was trained on");
  require(of_run->eval_files, "chose the model's epoch and calibration (--eval)");
}

void require_other_data(const std::vector<InputFile>& data, const FineTuned& model,
                        const std::string& why) {
  const std::string used = data_sum_of(model);
  const auto require = [&](const std::vector<InputFile>& files) {
    if (used.empty() || Fingerprint(files).result() != used) return;
    throw usage_error("--max-error: ", files.front().name.string(),
                      " has the checksum of the data that the model was trained on (",
                      kModelFactsFile, "); a promise needs rows that the model has not seen");
  };
  for (const InputFile& file : data) require({file});
  if (data.size() > 1) require(data);
  warn("--max-error: whether the model has seen rows of --data could not be checked: ", why,
       "; --train names the rows of training");
}

ExitCode keep_promise(const FineTuned& model, const std::optional<Promise>& promise) {
  if (!promise) return ExitCode::done;
  if (!promise->threshold) {
    remove_promise(promised_model(model));
    return ExitCode::assertion;
  }
  write_promise(promised_model(model), *promise);
  return ExitCode::done;
}

}  // namespace finetune

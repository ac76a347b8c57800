// Compares the files of a promise with those of the model's run.
#include "cli/options/promise_options.h"

#include "cli/output/output_file.h"
#include "core/error.h"

namespace finetune {

PromisedModel promised_model(const FineTuned& model) {
  const ModelDirectory& directory = model.model.directory;
  return {directory.directory, directory.config, directory.weights,
          answers_in_words(model.options)};
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

ExitCode keep_promise(const FineTuned& model, const std::optional<Promise>& promise) {
  if (!promise) return ExitCode::done;
  if (!promise->threshold) return ExitCode::assertion;
  write_promise(promised_model(model), *promise);
  return ExitCode::done;
}

}  // namespace finetune

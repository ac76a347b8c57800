// Reads a run's options and checks that its data has not changed.
#include "train/record/training_rows.h"

#include "core/error.h"
#include "core/files/files.h"
#include "train/options/config_file.h"
#include "train/options/option_words.h"
#include "train/options/options.h"
#include "train/record/summary.h"
#include "train/run/fingerprint.h"
#include "train/run/metrics_files.h"
#include "train/run/run_directory.h"
#include "train/run/run_setup.h"

namespace finetune {
namespace {

std::string data_sum_of(const fs::path& run) {
  for (const auto& [name, value] : read_facts(run / "run.json")) {
    if (name == "data_sha256") return value;
  }
  return "";
}

TrainOptions options_of(const fs::path& config) {
  TrainOptions options;
  for (const ConfigEntry& entry : read_config(config, ExitCode::model)) {
    const std::string fault = set_option(options, entry.name, entry.values);
    if (!fault.empty()) {
      throw model_error(config.string(), ":", entry.line, ": ", entry.name, " ", fault);
    }
  }
  return options;
}

// Without metrics if the run lacks them.
Metrics metrics_of(const fs::path& run) {
  try {
    return read_metrics(run / "metrics.json", ExitCode::model);
  } catch (const Error&) {
    return {};
  }
}

fs::path run_of(const fs::path& model) {
  return fs::absolute(model).lexically_normal().parent_path();
}

}  // namespace

TrainingRowsOfModel training_rows_of(const fs::path& model) {
  const fs::path run = run_of(model);
  try {
    if (output_state(run) != OutputState::run) return {{}, "the model lies in no run"};
    const TrainOptions options = options_of(run / "config.toml");
    const std::vector<fs::path> files = data_files(options);
    for (const fs::path& file : files) {
      if (kind_of(file, ExitCode::data) != FileKind::file) {
        return {{}, concat(file.string(), ", which its run has read, is not a file any more")};
      }
    }
    TaskOptions rows = task_options(options);
    rows.train_files = {options.train.begin(), options.train.end()};
    rows.eval_files = {options.eval.begin(), options.eval.end()};
    if (Fingerprint({files.begin(), files.end()}).result() != data_sum_of(run)) {
      return {{}, "its run's data are no longer what they were"};
    }
    return {std::move(rows), "", chose_best_step(options, metrics_of(run))};
  } catch (const Error& error) {  // a model can be used without its run
    return {{}, error.what()};
  }
}

std::vector<fs::path> files_named_by_run(const fs::path& model) {
  const fs::path run = run_of(model);
  try {
    if (output_state(run) != OutputState::run) return {};
    return data_files(options_of(run / "config.toml"));
  } catch (const Error&) {
    return {};
  }
}

}  // namespace finetune

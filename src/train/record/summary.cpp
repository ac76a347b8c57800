// Describes the result of a run and the next commands.
#include "train/record/summary.h"

#include <algorithm>

#include "core/files/files.h"
#include "core/text/shell_word.h"
#include "core/text/shown_numbers.h"
#include "tasks/registry.h"
#include "tasks/scores/result_lines.h"

namespace finetune {

bool has_model(const RunDirectory& directory) {
  return directory_exists(directory.model(), ExitCode::model);
}

bool chose_best_step(const TrainOptions& given, const Metrics& metrics) {
  const auto value = [&](const char* name) {
    const auto found = metrics.find(name);
    return found == metrics.end() ? 0 : found->second;
  };
  return metrics.contains("best_step") &&
         (given.eval_every ? value("train_steps") > double(*given.eval_every)
                           : value("train_epochs") > 1);
}

namespace {

constexpr int64_t kMostLines = 8;

// Returns the use of the evaluation rows besides measuring, or "".
std::string use_of_rows(const TrainOptions& given, const Metrics& metrics) {
  const bool chose = chose_best_step(given, metrics);
  const bool mixed = metrics.contains("eval_mix_ngrams");
  if (metrics.contains("eval_folds")) {
    return concat("each row was measured by ", mixed ? "a head and n-grams" : "a head",
                  " fitted without its fold; the model is fitted to all rows\n");
  }
  if (chose && mixed) {
    return "the best epoch was chosen on these rows; each row's mix was fitted on other rows\n";
  }
  if (mixed) return "each row's mix with n-grams was fitted on other rows\n";
  return chose ? "the best epoch was chosen on these rows\n" : "";
}

}  // namespace

std::string summary_of(const TrainOptions& given, const RunDirectory& directory,
                       const Metrics& metrics) {
  const std::string run = shell_word(given.output), model = shell_word(directory.model().string());
  const bool is_adapted = given.task == name_of(TaskKind::mlm);
  std::string text;
  const std::vector<std::string> result = result_lines(metrics);
  for (const std::string& line : result) text += line + "\n";
  text += use_of_rows(given, metrics);
  const bool is_unmeasured = result.empty() && !metrics.contains("eval_rows");
  if (const auto loss = metrics.find("train_loss"); is_unmeasured && loss != metrics.end()) {
    text += concat("training loss ", format_measure(loss->second),
                   "; no rows were held out to measure the model (--eval, --eval-fraction)\n");
  }
  if (!has_model(directory)) {
    return text + concat("model: ", model, " is gone; finetune ", is_adapted ? "adapt" : "train",
                         " --overwrite makes it again\n", "next:  finetune report ", run,
                         " --output report.html\n");
  }
  text += concat("model: ", model, "\n");
  if (is_adapted) {
    return text + concat("next:  finetune train --model ", model, " --train FILE --output RUN\n");
  }
  text += concat("next:  finetune predict --model ", model, " --input FILE --output FILE\n");
  if (std::count(text.begin(), text.end(), '\n') >= kMostLines) return text;
  return text + concat("       finetune report ", run, " --output report.html\n");
}

}  // namespace finetune

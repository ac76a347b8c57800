// Answers to new questions: windows, answers and n-best lists a few hundred questions at a time.
#include "tasks/qa/prediction.h"

#include <optional>
#include <utility>

#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"
#include "core/paths/output_names.h"
#include "tasks/pair_types.h"
#include "tasks/qa/evaluation/file_evaluation.h"

namespace finetune {
namespace {

TaskOptions with_input(TaskOptions options, const std::string& input) {
  options.eval_files = {std::filesystem::path(input == "-" ? "/dev/stdin" : input)};
  return options;
}

class AnswerPrediction final : public Prediction {
 public:
  AnswerPrediction(const PredictionRequest& request, const TaskOptions& options,
                   const TaskModel& model)
      : output_(request.output),
        n_best_(request.n_best),
        questions_(with_input(options, request.input), model.tokenizer, model.config.max_length(),
                   false) {}

  Head head() const override { return questions_.head(); }
  int64_t max_length() const override { return questions_.max_length(); }
  void run(PredictionModel& model, const OpenOutput& open, const ShowProgress& show) override;

 private:
  std::string output_, n_best_;
  QaFileEvaluation questions_;
};

void AnswerPrediction::run(PredictionModel& model, const OpenOutput& open,
                           const ShowProgress& show) {
  const double start = seconds_now();
  const std::unique_ptr<PredictionOutput> output = open(output_);
  std::unique_ptr<PredictionOutput> n_best_output;
  JsonObjectWriter answers([&](std::string_view text) { output->write(text); });
  std::optional<JsonObjectWriter> n_best;
  if (!n_best_.empty()) {
    n_best_output = open(n_best_);
    n_best.emplace([&](std::string_view text) { n_best_output->write(text); });
  }
  questions_.write_to({&answers, n_best ? &*n_best : nullptr, nullptr});
  model.evaluate(questions_, [&](double share) {
    show({int64_t(share * double(questions_.questions())), "questions", share});
  });
  answers.finish();
  if (n_best) {
    n_best->finish();
    n_best_output->complete();
  }
  output->complete();  // both or neither
  output->commit();
  if (n_best) n_best_output->commit();
  log("answered ", format_rate(questions_.questions(), "questions", seconds_now() - start));
}

}  // namespace

std::unique_ptr<Prediction> make_answer_prediction(const PredictionRequest& request,
                                                   const TaskOptions& options,
                                                   const TaskModel& model) {
  if (request.top_k || request.all_probabilities) {
    throw usage_error(
        "--top-k and --all-probabilities are for classification; this is a question-answering "
        "model (--nbest FILE writes its candidates)");
  }
  if (request.rows.skip_bad_rows) {
    throw usage_error("--skip-bad-rows is for classification; this is a question-answering model");
  }
  for (const auto& [option, path] :
       {std::pair("--output", request.output), std::pair("--nbest", request.n_best)}) {
    require_output_suffix(option, path, {".json"}, "one JSON object is written; name it .json");
  }
  require_pair_types(model.config, "question answering");
  return std::make_unique<AnswerPrediction>(request, options, model);
}

}  // namespace finetune

// Evaluation of question answering: logits of windows to official scores and files.
// It takes the logits of windows in any order, keeps of each only what its question's answer can
// need, and gives official scores and Hugging Face's files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/files/files.h"
#include "data/squad.h"
#include "data/text_sum.h"
#include "tasks/qa/evaluation/postprocess.h"
#include "tasks/qa/evaluation/squad_metrics.h"
#include "tasks/qa/features.h"
#include "tasks/task.h"

namespace finetune {

// Where answers are written; absent ones are left out.
struct AnswerWriters {
  JsonObjectWriter* predictions = nullptr;
  JsonObjectWriter* n_best = nullptr;
  JsonObjectWriter* null_odds = nullptr;  // version 2
};

// Hugging Face's files in a directory, written answer by answer: predictions.json,
// nbest_predictions.json, and null_odds.json under version 2.
class AnswerFiles {
 public:
  AnswerFiles(const std::filesystem::path& directory, int squad_version);
  AnswerWriters writers();
  void commit();  // without it nothing is left

 private:
  struct File {
    explicit File(const std::filesystem::path& path)
        : file(path), writer([this](std::string_view text) { file.write(text); }) {}
    void commit();
    AtomicFile file;
    JsonObjectWriter writer;
  };
  File predictions_, n_best_;
  std::optional<File> null_odds_;
};

// What the logits (length, 2) of window w can contribute to its question. Error(diverged) for
// logits that are not finite.
WindowAnswers window_answers(const SquadData& data, const QaWindows& windows, int64_t w,
                             const float* logits, const AnswerOptions& options);
// The training loss of window w, or nothing if the place of its question's answer is unknown.
std::optional<double> window_loss(const QaWindows& windows, int64_t w, const float* logits);

// The mean of window losses.
class MeanLoss {
 public:
  void add(std::optional<double> window);
  void write(Metrics& metrics) const;  // "eval_loss", unless no window has a loss

 private:
  double sum_ = 0;
  int64_t windows_ = 0;
};

void write_answer(const std::string& id, const QuestionAnswer& answer,
                  const AnswerWriters& writers);

// Questions whose question and context are trained on, too: one flag for each, or none where the
// trained ones are not known.
using RepeatedQuestions = std::vector<uint8_t>;
RepeatedQuestions repeated_questions(const SquadData& data, const TrainedTexts& trained);
std::vector<TextSum> question_sums(const SquadData& data);

// Scores of chosen answers, question by question in the order of the data.
class QuestionScores {
 public:
  explicit QuestionScores(int squad_version) : squad_version_(squad_version) {}
  void reserve(size_t questions) { questions_.reserve(questions); }
  void add(const SquadQuestion& question, const QuestionAnswer& answer);
  // With those of questions that are not repeated (tasks/repeated_texts.h), if that is known.
  Metrics metrics(const RepeatedQuestions& repeated = {}) const;

 private:
  int squad_version_;
  std::vector<ScoredQuestion> questions_;
  std::vector<NoAnswerScore> no_answer_;  // version 2
};

class QaEvaluation : public Evaluation {
 public:
  // Both live longer than the evaluation.
  QaEvaluation(const SquadData& data, const QaWindows& windows, const AnswerOptions& options,
               RepeatedQuestions repeated = {});

  void add(const PackedBatch& batch, const float* logits) override;
  // eval_loss is the mean training loss over the windows that have one.
  Metrics metrics() override;
  void write_files(const std::filesystem::path& directory) override;

  // The answers of all questions, in their order. Requires that all windows are in.
  void write(const AnswerWriters& writers) const;

 private:
  QuestionAnswer answer(int64_t question) const;  // index into SquadData::questions
  void check_complete() const;

  const SquadData& data_;
  const QaWindows& windows_;
  AnswerOptions options_;
  RepeatedQuestions repeated_;
  int64_t added_ = 0;
  std::vector<WindowAnswers> answers_;         // (windows)
  std::vector<std::optional<double>> losses_;  // (windows)
};

// Whether any question has a loss: one without an answer, or with an answer whose place is known.
bool has_known_places(const SquadData& data);
// The metrics that metrics() of version 1 or 2 can give.
std::vector<std::string> qa_metric_names(int squad_version, bool has_loss = true,
                                         bool knows_trained = false);

}  // namespace finetune

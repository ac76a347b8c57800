// The evaluator of `finetune next`: finds the rows of an input that are worth labelling.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tasks/classification/evaluation/input_rows.h"
#include "tasks/classification/next_rows/batch_choice.h"
#include "tasks/classification/next_rows/doubt.h"
#include "tasks/classification/ngram_mix/ngram_mix.h"
#include "tasks/evaluator.h"
#include "tasks/prediction_request.h"
#include "tasks/task_traits.h"

namespace finetune {

// A candidate is a text with its first row and the number of its rows. Texts with the same tokens
// are one candidate. Rows with a label are not candidates, and neither are texts that such rows or
// the rows of take_training_rows() have. Keeps all candidates in memory.
class NextRows final : public Evaluator {
 public:
  // Error(usage) if the model predicts numbers or has one label.
  NextRows(const PredictionRequest& request, const TaskOptions& options, const TaskModel& model);

  Head head() const override { return {HeadKind::sequence, outputs_}; }
  int64_t max_length() const override { return max_length_; }
  std::vector<std::string> describe_samples() const override;
  std::vector<std::string> warnings() const override { return rows_->warnings(); }
  EvaluatedUnit unit() const override { return {"looked at", "rows"}; }

  std::optional<SampleChunk> next() override;
  double share() const override { return rows_->share(); }
  int64_t rows() const override { return answered_; }
  double seconds_waited() const override { return rows_->seconds_waited(); }
  void add(const PackedBatch& batch, const float* logits) override;

  void take_training_rows(const TaskOptions& training) override;
  void open_outputs(const OpenOutput& open) override;
  // Chooses and writes the rows.
  void commit_outputs() override;
  // "rows", "rows_labelled", "rows_trained", "texts", "chosen", "chosen_rows".
  Metrics metrics() override;
  void write_files(const std::filesystem::path&) override {}

 private:
  struct Candidate {
    std::string line;  // the row's own values
    int64_t count = 0;
    Doubt doubt;
    bool is_labelled = false;  // a later row has a label
  };
  // A row that waits for its logits. If candidate < 0, they are not needed.
  struct Waiting {
    int64_t candidate = -1;
    std::vector<float> margins;
  };

  bool is_new(const TextSum& sum, const std::string& text, bool is_labelled);
  void leave_out_labelled();
  std::string reason(const Candidate& candidate) const;
  std::string header() const;

  TaskOptions options_;
  const Tokenizer& tokenizer_;
  ProblemType problem_;
  std::vector<std::string> labels_;
  int64_t outputs_, max_length_, wanted_;
  std::string output_name_;
  bool spreadsheet_safe_;
  std::unique_ptr<NgramMix> ngrams_;
  std::unique_ptr<InputRows> rows_;
  std::unique_ptr<PredictionLines> lines_;
  std::unique_ptr<PredictionOutput> output_;

  std::deque<WaitingRow> read_;  // from the last chunk
  std::deque<Waiting> waiting_;
  struct SumHash {
    size_t operator()(const TextSum& sum) const { return size_t(sum.first); }
  };
  std::unordered_map<TextSum, size_t, SumHash> places_;  // indices in candidates_
  std::unordered_set<TextSum, SumHash> labelled_;        // texts that have a label
  std::vector<Candidate> candidates_;
  std::vector<ChoiceCandidate> choice_;  // their texts and weights
  int64_t answered_ = 0, labelled_rows_ = 0, trained_rows_ = 0, chosen_ = 0, chosen_rows_ = 0;
  std::vector<float> mixed_;
};

}  // namespace finetune

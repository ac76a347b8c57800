// The rows of predict's input, without labels: from a file, a pipe or standard input.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "data/columns/row_chunk.h"
#include "data/columns/text_columns.h"
#include "data/rows/records.h"
#include "tasks/classification/evaluation/row_source.h"
#include "tasks/classification/predictions/left_out_words.h"
#include "tasks/prediction_request.h"
#include "tasks/task_traits.h"
#include "tasks/texts/cut_texts.h"

namespace finetune {

class InputRows final : public RowSource {
 public:
  // `options`: the model's stored options with the command line's changes. The tokenizer must
  // outlive this. Error(usage): an option names a column of plain text. Error(data): the input
  // lacks columns.
  InputRows(const PredictionRequest& request, const TaskOptions& options, const TaskModel& model,
            int64_t max_length);

  std::optional<SampleChunk> next(std::deque<WaitingRow>& waiting,
                                  const PredictionLines* lines) override;
  // A row from a pipe is answered even if no further row arrives.
  bool answers_each_chunk() const override { return true; }
  double share() const override { return reader_.share(); }
  double seconds_waited() const override { return waited_; }
  // With explanations also the texts of the rows without a word, in the order of the samples.
  std::vector<std::string> texts() override;
  // For the same rows: equal sums if the tokens are equal, so that the model sees no difference.
  std::vector<TextSum> token_sums() const;
  // For the same rows: whether the input has a column `name` and the row a value in it.
  std::vector<bool> have_value_in(std::string_view name);
  std::vector<std::string> columns() const override { return reader_.columns(); }
  std::vector<std::string> describe_samples() const override;
  std::vector<std::string> warnings() const override;
  std::vector<std::string> early_warnings() override;
  void require_usable_rows() const override;

 private:
  void measure(std::deque<WaitingRow>& waiting);
  void leave_out_words(std::deque<WaitingRow>& waiting);

  const Tokenizer& tokenizer_;
  std::string name_;  // the input's name
  bool from_pipe_, stream_;
  RowReader reader_;
  TextColumns text_;
  CutTexts texts_;
  RowChunk chunk_;
  std::optional<LeftOutWords> left_out_;  // only with explanations
  SampleSet set_;
  int64_t empty_ = 0;  // empty texts
  double waited_ = 0;
  bool warned_early_ = false;
};

}  // namespace finetune

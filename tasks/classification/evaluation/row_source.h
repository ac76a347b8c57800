// The sources of an evaluation's rows: memory, files with labels, or an input without labels.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/classification/drift/row_sample.h"
#include "tasks/classification/evaluation/slices.h"
#include "tasks/classification/predictions/prediction_format.h"
#include "tasks/classification/rows/dataset.h"
#include "tasks/evaluator.h"

namespace finetune {

// Whether a row tells something about new rows. It does not if the model's run read its text, or if
// an earlier row has the same text.
enum class Freshness { fresh, read_by_run, repeated };

// A row that waits for its logits. Values that the source does not have are empty.
struct WaitingRow {
  int32_t label = 0;                       // single-label: its true id
  std::vector<int32_t> labels;             // multi-label: true ids, ascending
  double target = 0;                       // regression
  bool repeated = false;                   // its text was trained on, too
  int fold = -1;                           // with options.folds
  Freshness freshness = Freshness::fresh;  // with options.promise
  std::vector<int32_t> slices;             // its places in Slices
  std::optional<RowTraits> traits;         // of a row in the sample of measure_with()
  std::vector<float> margins;              // of the n-grams to mix with its logits
  std::vector<std::string> words;          // to explain: the words left out in turn
  std::string text;                        // to explain: the whole text, for n-grams
  std::vector<float> answers;              // to explain: logits of the row, then without each word
  std::string line;                        // its own values, from PredictionLines::begin()
};

class RowSource {
 public:
  virtual ~RowSource() = default;
  // From now on next() fills WaitingRow::traits of the rows in `sample`, which must outlive this;
  // null: of no rows.
  void measure_with(const RowSample* sample) { sample_ = sample; }
  // Appends the next rows to `waiting` and returns their samples; nothing at the end. Fills
  // WaitingRow::line with `lines`, unless `lines` is null.
  virtual std::optional<SampleChunk> next(std::deque<WaitingRow>& waiting,
                                          const PredictionLines* lines) = 0;
  virtual double share() const = 0;  // of all rows, the share returned so far; negative: unknown
  virtual bool answers_each_chunk() const { return false; }
  virtual double seconds_waited() const { return 0; }
  virtual void rewind() {}  // rows in memory: next() begins again
  // For the rows that next() returned last: the inputs of the linear model (linear_input()).
  virtual std::vector<std::string> texts() { return {}; }
  virtual std::vector<std::string> columns() const = 0;
  virtual Slices* slices() { return nullptr; }  // null: not asked for
  // See the members of Evaluator. `answers`: how answers differ from the model's own, or empty.
  virtual std::vector<std::string> describe(const std::string& /*answers*/) const { return {}; }
  virtual std::vector<std::string> describe_samples() const { return {}; }
  virtual std::vector<std::string> warnings() const { return {}; }
  virtual std::vector<std::string> early_warnings() { return {}; }
  virtual void take_training_rows(const TaskOptions&) {}
  virtual Baselines baselines();
  // Error(data) if there were rows, but none of them is usable.
  virtual void require_usable_rows() const {}

 protected:
  const RowSample* sample_ = nullptr;
};

// The evaluation rows that a training run holds in memory.
class RowsInMemory final : public RowSource {
 public:
  // `data` must outlive this.
  explicit RowsInMemory(const ClassificationData& data)
      : side_(data.eval), chunks_(data.eval.set), problem_(data.problem) {}
  std::optional<SampleChunk> next(std::deque<WaitingRow>& waiting,
                                  const PredictionLines* lines) override;
  double share() const override { return chunks_.share(); }
  void rewind() override { chunks_.rewind(); }
  std::vector<std::string> columns() const override { return side_.table->columns(); }

 private:
  const ClassificationSide& side_;
  SampleSetChunks chunks_;
  ProblemType problem_;
};

}  // namespace finetune

// Where the rows of an evaluation come from: memory, files with labels, or an input without.
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

// What a row says about new rows: nothing if the model's run read its text, and nothing more if an
// earlier row has its text.
enum class Freshness { fresh, read_by_run, repeated };

// A row that waits for its logits. What the source does not have is empty.
struct WaitingRow {
  int32_t label = 0;                       // single-label: its true id
  std::vector<int32_t> labels;             // multi-label: true ids, ascending
  double target = 0;                       // regression
  bool repeated = false;                   // its text was trained on, too
  int fold = -1;                           // with options.folds
  Freshness freshness = Freshness::fresh;  // with options.promise
  std::vector<int32_t> slices;             // its places in Slices
  std::optional<RowTraits> traits;         // of a row in the sample of measure_with()
  std::vector<float> margins;              // of n-grams that are mixed with its logits
  std::vector<std::string> words;          // to be explained: left out of it in turn
  std::string text;                        // to be explained: the whole text, for n-grams
  std::vector<float> answers;  // to be explained: logits of the row and without each word
  std::string line;            // its own values, as PredictionLines::begin() gives them
};

class RowSource {
 public:
  virtual ~RowSource() = default;
  // next() fills WaitingRow::traits of the rows in `sample`, which must outlive this; null: of
  // none.
  void measure_with(const RowSample* sample) { sample_ = sample; }
  // Appends the next rows to `waiting` and returns their samples; nothing at the end. Fills
  // WaitingRow::line by `lines`, unless that is null.
  virtual std::optional<SampleChunk> next(std::deque<WaitingRow>& waiting,
                                          const PredictionLines* lines) = 0;
  virtual double share() const = 0;  // of all rows that next() has given; negative: unknown
  virtual bool answers_each_chunk() const { return false; }
  virtual double seconds_waited() const { return 0; }
  virtual void rewind() {}  // of rows in memory: next() begins again
  // Of the rows that next() gave last: the inputs of the linear model (linear_input()).
  virtual std::vector<std::string> texts() { return {}; }
  virtual std::vector<std::string> columns() const = 0;
  virtual Slices* slices() { return nullptr; }  // null: none were asked for
  // As the members of Evaluator. `answers`: how answers differ from the model's own, or empty.
  virtual std::vector<std::string> describe(const std::string& /*answers*/) const { return {}; }
  virtual std::vector<std::string> describe_samples() const { return {}; }
  virtual std::vector<std::string> warnings() const { return {}; }
  virtual std::vector<std::string> early_warnings() { return {}; }
  virtual void take_training_rows(const TaskOptions&) {}
  virtual Baselines baselines();
  // Error(data) if there were rows, but none that can be used.
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

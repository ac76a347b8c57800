// Labels of new rows: read, computed and written a chunk at a time.
#include "tasks/classification/prediction.h"

#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"
#include "core/paths/output_names.h"
#include "core/text/counted.h"
#include "data/rows/records.h"
#include "tasks/classification/evaluation/predictor.h"
#include "tasks/classification/rows/row_chunk.h"
#include "tasks/registry.h"

namespace finetune {
namespace {

// Keeps the logits of a chunk in the order of its rows.
class LogitStore final : public Evaluation {
 public:
  explicit LogitStore(int64_t outputs) : outputs_(outputs) {}
  void add(const PackedBatch& batch, const float* logits) override {
    values.insert(values.end(), logits, logits + batch.sequences() * outputs_);
  }
  Metrics metrics() override { return {}; }
  void write_files(const std::filesystem::path&) override {}

  std::vector<float> values;  // (rows, outputs)

 private:
  int64_t outputs_;
};

// Options that name columns would be passed over without a word.
void check_plain_text(const PredictionRequest& request) {
  if (request.column_option.empty()) return;
  throw usage_error(
      request.column_option, ": ", request.input == "-" ? "standard input" : request.input,
      " is read as one text a line and has no columns; give a .csv, .tsv or .jsonl file, or "
      "--input-format");
}

RowOptions reading(const PredictionRequest& request, const TaskOptions& options) {
  RowOptions rows = request.rows;
  rows.columns = row_options_of(options, true).columns;
  rows.first_line_decides = request.stream && is_pipe(request.input);
  rows.may_be_empty = true;
  return rows;
}

class LabelPrediction final : public Prediction {
 public:
  LabelPrediction(const PredictionRequest& request, const TaskOptions& options,
                  const TaskModel& model)
      : input_(input_name(request.input)),
        output_(request.output),
        from_pipe_(is_pipe(request.input)),
        stream_(request.stream),
        predictor_(options, model.tokenizer, model.config, request.top_k.value_or(1),
                   request.all_probabilities),
        reader_(request.input, reading(request, options)) {
    const bool plain = reader_.format() == RowFormat::plain_text;
    if (plain) check_plain_text(request);
    if (request.spreadsheet_safe) predictor_.write_for_spreadsheets();
    header_ = predictor_.begin(reader_.columns(), request.input, plain, request.json_lines);
  }

  Head head() const override { return predictor_.head(); }
  int64_t max_length() const override { return predictor_.max_length(); }
  void run(PredictionModel& model, const OpenOutput& open, const ShowProgress& show) override;

 private:
  void warn_early();

  std::string input_, output_;
  bool warned_early_ = false;
  bool from_pipe_, stream_;
  ClassificationPredictor predictor_;
  RowReader reader_;
  std::string header_;
};

// Once there are enough rows to tell: who waits for many can mend them first.
void LabelPrediction::warn_early() {
  constexpr int64_t kEnough = 1000;
  const CutTexts& texts = predictor_.cut_texts();
  if (warned_early_ || texts.rows < kEnough) return;
  warned_early_ = true;
  for (const std::string& warning : text_warnings("input", texts)) {
    log("after ", texts.rows, " rows: ", warning);
  }
}

void LabelPrediction::run(PredictionModel& model, const OpenOutput& open,
                          const ShowProgress& show) {
  const double start = seconds_now();
  double waiting = 0;  // for who writes the rows
  std::string text = std::move(header_);
  const std::unique_ptr<PredictionOutput> output = open(output_);
  RowChunk chunk;
  int64_t done = 0;  // rows
  double share = 0;  // of the input
  // The header goes with the first rows, so that a fault in these leaves no output at all.
  const auto read = [&] {
    const double begin = seconds_now();
    const bool more = chunk.read(reader_, kPredictionChunk, RowChunk::kMostBytes, stream_);
    if (from_pipe_) waiting += seconds_now() - begin;
    return more;
  };
  while (read()) {
    SampleSet set = predictor_.tokenize(chunk.rows());
    LogitStore logits(predictor_.head().outputs);
    const double before = share, now = reader_.share();
    bool is_shown = false;
    model.evaluate(set, logits, [&](double of_chunk) {
      is_shown = show({done + int64_t(of_chunk * double(chunk.size())), "rows",
                       now < 0 ? now : before + (now - before) * of_chunk});
    });
    if (is_shown) warn_early();
    done += chunk.size();
    share = std::max(0.0, now);
    text += predictor_.format(chunk.rows(), logits.values);
    output->write(text);
    if (stream_) output->flush();
    text.clear();
  }
  if (predictor_.rows() == 0 && reader_.skipped_rows() > 0) {
    throw data_error(reader_.first_problem(), " (and no other row can be used)");
  }
  output->write(text);
  output->commit();
  if (predictor_.rows() == 0) warn(input_, " holds no rows");
  log("predicted ", format_rate(predictor_.rows(), "rows", seconds_now() - start - waiting));
  if (const std::string line = model.describe(); !line.empty()) log(line);
  const CutTexts& texts = predictor_.cut_texts();
  for (const std::string& warning : text_warnings("input", texts)) log(warning);
  if (texts.counts.truncated > 0 && describe_cut_texts("input", texts).empty()) {
    log(texts.counts.truncated, " of ", counted(texts.rows, "text"),
        texts.counts.truncated == 1 ? " was" : " were", " cut at ", cut_length(texts));
  }
  if (texts.split > 0) {
    log(counted(texts.split, "text has", "texts have"), " several windows, ",
        counted(texts.windows, "window"), " in all; labels are of their mean logits");
  }
  if (const std::string line = predictor_.describe_answers(); !line.empty()) log(line);
  if (predictor_.unsure() > 0) {
    log(predictor_.unsure(), " of ", counted(predictor_.rows(), "label"),
        predictor_.unsure() == 1 ? " is " : " are ", kUnsure, ": below --min-probability");
  }
  if (predictor_.empty() > 0) {
    warn(counted(predictor_.empty(), "text is empty", "texts are empty"));
  }
  if (reader_.skipped_rows() > 0) {
    warn(counted(reader_.skipped_rows(), "unusable row was", "unusable rows were"), " dropped");
  }
}

}  // namespace

std::unique_ptr<Prediction> make_label_prediction(const PredictionRequest& request,
                                                  const TaskOptions& options,
                                                  const TaskModel& model) {
  if (!request.n_best.empty()) {
    throw usage_error("--nbest is for question answering; this is a classification model");
  }
  require_form_of(TaskKind::classification, std::filesystem::path(request.input),
                  options.text_columns);
  if (request.json_lines) {
    require_output_suffix("--output", request.output, {".jsonl", ".ndjson", ".json"},
                          "labels are written as JSON Lines; name it .jsonl");
  } else {
    require_output_suffix("--output", request.output, {".csv"},
                          "labels are written as CSV or JSON Lines; name it .csv or .jsonl");
  }
  return std::make_unique<LabelPrediction>(request, options, model);
}

}  // namespace finetune

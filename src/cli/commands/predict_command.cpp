// finetune predict
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include "cli/command.h"
#include "cli/inference_binding.h"
#include "cli/standard_output.h"
#include "cli/world.h"
#include "comm/agreement.h"
#include "core/clock.h"
#include "core/files.h"
#include "core/log.h"
#include "data/input_file.h"
#include "data/rows/records.h"
#include "data/squad.h"
#include "tasks/classification/evaluation/predictor.h"
#include "tasks/classification/rows/row_chunk.h"
#include "tasks/pair_types.h"
#include "tasks/qa/evaluation/file_evaluation.h"
#include "tasks/registry.h"
#include "inference/batch_dispatch.h"
#include "inference/logits_cache.h"

namespace finetune {
namespace {

struct PredictOptions {
  InferenceOptions inference;
  std::string input;
  std::string output;
  std::string n_best;
  std::optional<int64_t> top_k;
  bool all_probabilities = false;
  bool skip_bad_rows = false;
  bool quiet = false;
  bool overwrite = false;
};

// A device or a pipe: written as it is, for there is nothing to rename.
class Stream {
 public:
  explicit Stream(const std::string& path)
      : path_(path), descriptor_(::open(path.c_str(), O_WRONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) fail();
  }
  ~Stream() { ::close(descriptor_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void write(std::string_view text) {
    if (!write_all(descriptor_, text)) fail();
  }

 private:
  [[noreturn]] void fail() const {
    throw model_error(path_, ": cannot be written: ", std::strerror(errno));
  }

  std::string path_;
  int descriptor_;
};

// A file, whole or not at all; standard output; or a device or pipe.
class Output {
 public:
  explicit Output(const std::string& path) {
    if (path == "-") return;
    if (is_pipe(path)) {
      stream_.emplace(path);
    } else {
      remove_abandoned_files(path);
      file_.emplace(path);
    }
  }
  void write(std::string_view text) {
    if (file_)
      file_->write(text);
    else if (stream_)
      stream_->write(text);
    else
      write_standard_output(text);
  }
  void complete() {
    if (file_) file_->complete();
  }
  void commit() {
    if (file_)
      file_->commit();
    else if (!stream_)
      flush_standard_output();
  }

 private:
  std::optional<AtomicFile> file_;
  std::optional<Stream> stream_;
};

// Keeps the logits of a chunk in the order of its rows.
class LogitStore final : public Evaluation {
 public:
  explicit LogitStore(int64_t outputs) : outputs_(outputs) {}
  void add(const PackedBatch& batch, const float* logits) override {
    values.insert(values.end(), logits, logits + batch.sequences() * outputs_);
  }
  Metrics metrics() override { return {}; }
  void write_files(const fs::path&) override {}

  std::vector<float> values;  // (rows, outputs)

 private:
  int64_t outputs_;
};

// Options that name columns would be passed over without a word.
void check_plain_text(const PredictOptions& o) {
  const InferenceOptions& given = o.inference;
  if (!given.text_columns && !given.text_pair_column) return;
  throw usage_error(
      given.text_columns ? "--text-column" : "--text-pair-column", ": ",
      o.input == "-" ? "standard input" : o.input,
      " is read as one text a line and has no columns; give a .csv, .tsv or .jsonl file");
}

// A prediction in progress: opened before the weights are loaded, so that faults show first.
class Prediction {
 public:
  virtual ~Prediction() = default;
  virtual Head head() const = 0;
  virtual int64_t max_length() const = 0;
  virtual void run(FineTuned& model, BatchDispatcher& dispatcher, const PredictOptions& o) = 0;
};

class LabelPrediction final : public Prediction {
 public:
  LabelPrediction(const FineTuned& model, const PredictOptions& o);
  Head head() const override { return predictor_->head(); }
  int64_t max_length() const override { return predictor_->max_length(); }
  void run(FineTuned& model, BatchDispatcher& dispatcher, const PredictOptions& o) override;

 private:
  std::optional<ClassificationPredictor> predictor_;
  std::optional<RowReader> reader_;
  std::string header_;
};

LabelPrediction::LabelPrediction(const FineTuned& model, const PredictOptions& o) {
  if (!o.n_best.empty()) {
    throw usage_error("--nbest is for question answering; this is a classification model");
  }
  if (looks_like_squad(fs::path(o.input))) {
    throw data_error(o.input, ": holds questions, but the model was trained for classification");
  }
  const std::string suffix = fs::path(o.output).extension();
  if (suffix == ".tsv" || suffix == ".jsonl" || suffix == ".json") {
    throw usage_error("--output ", o.output, ": labels are written as CSV; name it .csv");
  }
  predictor_.emplace(model.options, *model.model.tokenizer, model.model.config, o.top_k.value_or(1),
                     o.all_probabilities);
  reader_.emplace(o.input, o.skip_bad_rows);
  const bool plain = reader_->format() == RowFormat::plain_text;
  if (plain) check_plain_text(o);
  header_ = predictor_->begin(reader_->columns(), o.input, plain);
}

void LabelPrediction::run(FineTuned& model, BatchDispatcher& dispatcher, const PredictOptions& o) {
  const double start = seconds_now();
  ClassificationPredictor& predictor = *predictor_;
  RowReader& reader = *reader_;
  std::string text = std::move(header_);
  Output output(o.output);
  RowChunk chunk;
  // The header goes with the first rows, so that a fault in these leaves no output at all.
  while (chunk.read(reader, kPredictionChunk)) {
    SampleSet set = predictor.tokenize(chunk.rows());
    LogitStore logits(predictor.head().outputs);
    dispatcher.evaluate(set, logits, model.micro_batch_tokens, [](double) { return true; });
    text += predictor.format(chunk.rows(), logits.values);
    output.write(text);
    text.clear();
  }
  output.write(text);
  output.commit();
  log("predicted ", format_rate(predictor.rows(), "rows", seconds_now() - start));
  if (dispatcher.cache_hits() > 0) log(describe_cache_hits(dispatcher.cache_hits()));
  if (predictor.truncated() > 0) {
    log(predictor.truncated(), " of ", predictor.rows(), " texts were cut at ",
        predictor.max_length(), " tokens");
  }
  if (predictor.empty() > 0) log("warning: ", predictor.empty(), " texts are empty");
  if (reader.skipped_rows() > 0)
    log("warning: ", reader.skipped_rows(), " unusable rows were dropped");
}

class AnswerPrediction final : public Prediction {
 public:
  AnswerPrediction(const FineTuned& model, const PredictOptions& o);
  Head head() const override { return questions_->head(); }
  int64_t max_length() const override { return questions_->max_length(); }
  void run(FineTuned& model, BatchDispatcher& dispatcher, const PredictOptions& o) override;

 private:
  std::optional<QaFileEvaluation> questions_;
};

AnswerPrediction::AnswerPrediction(const FineTuned& model, const PredictOptions& o) {
  if (o.top_k || o.all_probabilities) {
    throw usage_error(
        "--top-k and --all-probabilities are for classification; this is a question-answering "
        "model (--nbest FILE writes its candidates)");
  }
  if (o.skip_bad_rows) {
    throw usage_error("--skip-bad-rows is for classification; this is a question-answering model");
  }
  TaskOptions options = model.options;
  options.eval_files = {fs::path(o.input == "-" ? "/dev/stdin" : o.input)};
  require_pair_types(model.model.config, "question answering");
  questions_.emplace(options, *model.model.tokenizer, model.model.config.max_position_embeddings,
                     false);
}

void AnswerPrediction::run(FineTuned& model, BatchDispatcher& dispatcher, const PredictOptions& o) {
  const double start = seconds_now();
  QaFileEvaluation& questions = *questions_;
  Output output(o.output);
  std::optional<Output> n_best_output;
  JsonObjectWriter answers([&](std::string_view text) { output.write(text); });
  std::optional<JsonObjectWriter> n_best;
  if (!o.n_best.empty()) {
    n_best_output.emplace(o.n_best);
    n_best.emplace([&](std::string_view text) { n_best_output->write(text); });
  }
  questions.write_to({&answers, n_best ? &*n_best : nullptr, nullptr});
  dispatcher.evaluate(questions, model.micro_batch_tokens, [](double) {});
  answers.finish();
  if (n_best) {
    n_best->finish();
    n_best_output->complete();
  }
  output.complete();  // both or neither
  output.commit();
  if (n_best) n_best_output->commit();
  log("answered ", format_rate(questions.questions(), "questions", seconds_now() - start));
}

bool same_file(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return a != "-" && b != "-" && (a == b || fs::equivalent(a, b, ignored));
}

// Where a link leads, whose file is replaced in place of the link.
std::string destination(const std::string& path) {
  std::error_code error;
  if (path.empty() || is_pipe(path) || !fs::is_symlink(fs::symlink_status(path, error))) {
    return path;
  }
  const fs::path found = fs::canonical(path, error);
  if (error) throw usage_error(path, ": is a symbolic link that leads nowhere; name a file");
  return found;
}

void check_paths(const PredictOptions& o) {
  for (const std::string& path : {o.output, o.n_best}) {
    if (path.empty() || is_pipe(path) || !path_exists(path, ExitCode::model)) continue;
    if (directory_exists(path, ExitCode::model))
      throw usage_error(path, ": is a directory, a file is needed");
    if (same_file(path, o.input))
      throw usage_error(path, ": is the input; write the output to another file");
    if (!o.overwrite) throw usage_error(path, ": exists; --overwrite replaces it");
  }
  if (o.output == o.n_best || same_file(o.output, o.n_best)) {
    throw usage_error("--output and --nbest are both ", o.output, "; they need two files");
  }
}

void check_model_survives(const PredictOptions& o, const fs::path& model_directory) {
  for (const std::string& path : {o.output, o.n_best}) {
    std::error_code ignored;
    if (path.empty() || is_pipe(path) || !path_exists(path, ExitCode::model)) continue;
    if (fs::equivalent(fs::absolute(path).parent_path(), model_directory, ignored))
      throw usage_error(path, ": is one of the model's files; write the output elsewhere");
  }
}

void run(PredictOptions& o) {
  Communicator& comm = world();
  FineTuned model;
  std::unique_ptr<Prediction> prediction;
  together(comm, [&] {
    if (comm.rank() != 0) return;
    for (std::string* path : {&o.output, &o.n_best}) *path = destination(*path);
    check_paths(o);
    model = open_fine_tuned(o.inference);
    check_model_survives(o, model.model.directory.directory);
    if (model.kind == TaskKind::qa)
      prediction = std::make_unique<AnswerPrediction>(model, o);
    else
      prediction = std::make_unique<LabelPrediction>(model, o);
  });
  if (comm.rank() != 0) return serve_inference(o.inference, comm);
  load_fine_tuned(model, o.inference, prediction->head(), prediction->max_length(), comm);
  BatchDispatcher dispatcher(*model.engine, comm);
  prediction->run(model, dispatcher, o);
  dispatcher.done();
  open_console(o.quiet);
}

}  // namespace

void add_predict_command(Subcommand program, int&) {
  const Subcommand command =
      program.add_subcommand("predict", "Labels or answers of a fine-tuned model for new data");
  auto o = std::make_shared<PredictOptions>();
  bind_inference_options(command, o->inference);
  command
      .add_option(
          "--input", o->input,
          "CSV, TSV, JSONL, a text per line, SQuAD JSON; - is standard input (of rows: a text per "
          "line)")
      .required()
      .type_name("FILE|-")
      .group("Data");
  command.add_flag("--skip-bad-rows", o->skip_bad_rows, "drop and count malformed rows")
      .group("Data");
  command
      .add_option("--output", o->output, "CSV, or for qa JSON {id: answer}; - is standard output")
      .required()
      .type_name("FILE|-")
      .group("Output");
  whole_number(command.add_option("--top-k", o->top_k,
                                  "classification: the K most probable labels (default: 1)"),
               1)
      .type_name("K")
      .group("Output");
  command
      .add_flag("--all-probabilities", o->all_probabilities,
                "classification: a column for every label")
      .group("Output");
  command.add_option("--nbest", o->n_best, "qa: write the n-best lists here")
      .type_name("FILE")
      .group("Output");
  command.add_flag("--overwrite", o->overwrite, "replace existing files").group("Output");
  command.add_flag("--quiet", o->quiet, "no counts on standard error").group("Output");
  command.footer(
      "Examples:\n"
      "  finetune predict --model runs/a/model --input new.csv --output labels.csv\n"
      "  echo 'RONA BRACKETS' | finetune predict --model runs/a/model --input - --output -\n"
      "  finetune predict --model runs/b/model --input questions.json --output answers.json");
  command.callback([o] { run(*o); });
}

}  // namespace finetune

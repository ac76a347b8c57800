// finetune predict
#include <cstdio>
#include <memory>
#include <numeric>
#include <optional>

#include "cli/command.h"
#include "cli/inference_binding.h"
#include "core/files.h"
#include "core/log.h"
#include "data/packing.h"
#include "data/records.h"
#include "tasks/classification/predictor.h"
#include "tasks/classification/row_chunk.h"
#include "tasks/qa/qa_task.h"
#include "tasks/registry.h"

namespace finetune {
namespace {

struct PredictOptions {
  InferenceOptions inference;
  std::string input;
  std::string output;
  std::string n_best;
  int64_t top_k = 1;
  bool all_probabilities = false;
  bool overwrite = false;
};

// A file, whole or not at all, or standard output.
class Output {
 public:
  explicit Output(const std::string& path) {
    if (path != "-") file_.emplace(path);
  }
  void write(std::string_view text) {
    if (file_) {
      file_->write(text);
    } else if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) {
      throw model_error("standard output: cannot be written");
    }
  }
  void commit() {
    if (file_) file_->commit();
    else if (std::fflush(stdout) != 0) throw model_error("standard output: cannot be written");
  }

 private:
  std::optional<AtomicFile> file_;
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

void predict_labels(FineTuned& model, const PredictOptions& o) {
  ClassificationPredictor predictor(model.options, *model.model.tokenizer, model.model.config,
                                    o.top_k, o.all_probabilities);
  RowReader reader(o.input);
  std::string header = predictor.begin(reader.columns(), o.input, reader.format() == RowFormat::plain_text);
  load_fine_tuned(model, o.inference, predictor.head());
  model.reserve(predictor.max_length());
  Output output(o.output);
  output.write(header);
  RowChunk chunk;
  while (chunk.read(reader, kPredictionChunk)) {
    SampleSet set = predictor.tokenize(chunk.rows());
    LogitStore logits(predictor.head().outputs);
    model.engine->evaluate(set, logits, model.micro_batch_tokens, [](double) { return true; });
    output.write(predictor.format(chunk.rows(), logits.values));
  }
  output.commit();
  if (predictor.truncated() > 0) {
    log(predictor.truncated(), " of ", predictor.rows(), " texts were cut at ", predictor.max_length(), " tokens");
  }
}

void predict_answers(FineTuned& model, const PredictOptions& o) {
  TaskOptions options = model.options;
  options.eval_files = {o.input};
  QaPredictor predictor(options, *model.model.tokenizer, model.model.config.max_position_embeddings);
  load_fine_tuned(model, o.inference, {HeadKind::token, 2});
  model.reserve(qa_window_options(options, *model.model.tokenizer,
                                  model.model.config.max_position_embeddings).max_length);
  Output output(o.output);
  std::optional<Output> n_best_output;
  JsonObjectWriter answers([&](std::string_view text) { output.write(text); });
  std::optional<JsonObjectWriter> n_best;
  if (!o.n_best.empty()) {
    n_best_output.emplace(o.n_best);
    n_best.emplace([&](std::string_view text) { n_best_output->write(text); });
  }
  while (predictor.next()) {
    auto evaluation = predictor.start();
    model.engine->evaluate(predictor.samples(), *evaluation, model.micro_batch_tokens,
                           [](double) { return true; });
    evaluation->write({&answers, n_best ? &*n_best : nullptr, nullptr});
  }
  answers.finish();
  output.commit();
  if (n_best) {
    n_best->finish();
    n_best_output->commit();
  }
}

void run(const PredictOptions& o) {
  for (const std::string& path : {o.output, o.n_best}) {
    if (!path.empty() && path != "-" && !o.overwrite && fs::exists(path)) {
      throw usage_error(path, ": exists; --overwrite replaces it");
    }
  }
  FineTuned model = open_fine_tuned(o.inference);
  if (model.kind == TaskKind::qa) predict_answers(model, o);
  else predict_labels(model, o);
  open_console(false);
}

}  // namespace

void add_predict_command(CLI::App& app, int&) {
  auto* command = app.add_subcommand("predict", "Labels or answers of a fine-tuned model for new data");
  auto o = std::make_shared<PredictOptions>();
  bind_inference_options(*command, o->inference);
  command->add_option("--input", o->input, "CSV, TSV, JSONL, a text per line, SQuAD JSON; - is standard input")
      ->required()->type_name("FILE|-");
  command->add_option("--output", o->output, "CSV, or for qa JSON {id: answer}; - is standard output")
      ->required()->type_name("FILE|-");
  command->add_option("--top-k", o->top_k, "classification: the K most probable labels")->check(CLI::PositiveNumber);
  command->add_flag("--all-probabilities", o->all_probabilities, "classification: a column for every label");
  command->add_option("--nbest", o->n_best, "qa: write the n-best lists here")->type_name("FILE");
  command->add_flag("--overwrite", o->overwrite, "replace existing files");
  command->footer(
      "Examples:\n"
      "  finetune predict --model runs/a/model --input new.csv --output labels.csv\n"
      "  echo 'RONA BRACKETS' | finetune predict --model runs/a/model --input - --output -\n"
      "  finetune predict --model runs/b/model --input questions.json --output answers.json");
  command->callback([o] { run(*o); });
}

}  // namespace finetune

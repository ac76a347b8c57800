// finetune predict: labels or answers for new data.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include "cli/command.h"
#include "cli/options/inference_binding.h"
#include "cli/options/number_option.h"
#include "cli/options/row_binding.h"
#include "cli/standard_output.h"
#include "cli/world.h"
#include "comm/agreement.h"
#include "core/clock.h"
#include "core/files/files.h"
#include "core/log.h"
#include "data/input_file.h"
#include "inference/batch_dispatch.h"
#include "inference/equal_processes.h"
#include "inference/logits_cache.h"
#include "tasks/registry.h"
#include "train/record/progress.h"

namespace finetune {
namespace {

struct PredictOptions {
  InferenceOptions inference;
  std::string input;
  std::string output;
  std::string n_best;
  std::optional<int64_t> top_k;
  std::optional<double> min_probability;
  bool all_probabilities = false;
  RowWords rows;
  std::string input_format = "auto";
  bool json_lines = false;
  bool spreadsheet_safe = false;
  bool stream = false;
  bool quiet = false;
  bool no_progress = false;
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
class Output final : public PredictionOutput {
 public:
  Output(const std::string& path, bool overwrite) {
    if (path == "-") return;
    if (is_pipe(path)) {
      stream_.emplace(path);
    } else {
      remove_abandoned_files(path);
      file_.emplace(path, overwrite ? AtomicFile::Existing::replace : AtomicFile::Existing::refuse);
    }
  }
  void write(std::string_view text) override {
    if (file_)
      file_->write(text);
    else if (stream_)
      stream_->write(text);
    else
      write_standard_output(text);
  }
  void flush() override {
    if (!file_ && !stream_) flush_standard_output();
  }
  void complete() override {
    if (file_) file_->complete();
  }
  void commit() override {
    if (file_)
      file_->commit();
    else if (!stream_)
      flush_standard_output();
  }

 private:
  std::optional<AtomicFile> file_;
  std::optional<Stream> stream_;
};

// The progress line, and with it the log: not in the first seconds, so that a short command that
// fails prints one line alone. Never where the predictions themselves go to a terminal.
class Progress {
 public:
  Progress(const PredictOptions& options)
      : options_(options), hidden_(options.output == "-" && ::isatty(STDOUT_FILENO) == 1) {}

  // `share`: of the input that is done; negative: unknown. False: not shown.
  bool show(const Evaluator& evaluator, double share) {
    constexpr double kFirst = 2;
    const double seconds = seconds_now() - start_;
    if (hidden_ || seconds < kFirst) return false;
    if (!is_open_) {
      enable_progress(!options_.no_progress);
      open_console(options_.quiet);
      is_open_ = true;
    }
    const EvaluatedUnit unit = evaluator.unit();
    show_progress(progress_parts(unit.verb, evaluator.rows(), unit.rows, share, seconds));
    return true;
  }

 private:
  const PredictOptions& options_;
  bool hidden_, is_open_ = false;
  double start_ = seconds_now();
};

PredictionRequest request_of(const PredictOptions& o, TaskKind kind) {
  PredictionRequest request;
  request.input = o.input;
  request.output = o.output;
  request.n_best = o.n_best;
  request.top_k = o.top_k;
  request.all_probabilities = o.all_probabilities;
  request.rows = row_options(o.rows, kind, o.inference.model);
  if (o.input_format != "auto") require_option_of(kind, "input-format", o.inference.model);
  request.rows.format = parse_row_format(o.input_format);
  if (o.stream) require_option_of(kind, "stream", o.inference.model);
  if (o.stream && o.output != "-" && !is_pipe(o.output)) {
    throw usage_error("--stream writes to standard output or a pipe; ", o.output,
                      " is a file, which appears whole");
  }
  // Who types texts sees each one's label at once.
  request.stream = o.stream || (o.output == "-" && ::isatty(STDOUT_FILENO) == 1);
  if (o.json_lines) require_option_of(kind, "json-lines", o.inference.model);
  request.json_lines = o.json_lines || ends_with_ignoring_case(o.output, ".jsonl") ||
                       ends_with_ignoring_case(o.output, ".ndjson");
  if (o.spreadsheet_safe) require_option_of(kind, "spreadsheet-safe", o.inference.model);
  if (o.spreadsheet_safe && request.json_lines) {
    throw usage_error("--spreadsheet-safe is for CSV; JSON Lines are written");
  }
  request.spreadsheet_safe = o.spreadsheet_safe;
  if (o.inference.text_columns) {
    request.column_option = "--text-column";
  } else if (o.inference.text_pair_column) {
    request.column_option = "--text-pair-column";
  }
  return request;
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

void require_unpacked_name(const std::string& path) {
  for (const char* packed : {".gz", ".zst", ".bz2", ".xz"}) {
    if (!ends_with_ignoring_case(path, packed)) continue;
    throw usage_error(path, ": outputs are not packed; name it without ", packed,
                      ", or send --output - through a packer");
  }
}

void check_paths(const PredictOptions& o) {
  require_unpacked_name(o.output);
  require_unpacked_name(o.n_best);
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

void log_outcome(const Evaluator& evaluator, double seconds, int64_t cache_hits) {
  const EvaluatedUnit unit = evaluator.unit();
  const double computing = seconds - evaluator.seconds_waited();
  log(unit.verb, " ", format_rate(evaluator.rows(), unit.rows, computing));
  if (cache_hits > 0) log(describe_cache_hits(cache_hits));
  for (const std::string& line : evaluator.describe_samples()) log(line);
  for (const std::string& line : evaluator.warnings()) warn(line);
}

void run(PredictOptions& o, std::string_view given) {
  Communicator& comm = world();
  FineTuned model;
  std::unique_ptr<Evaluator> evaluator;
  comm.set_timeout(o.inference.comm_timeout);
  agree_on_errors(comm, [&] { layout_of(o.inference, comm.size()); });
  require_equal_processes(comm, given);
  agree_on_errors(comm, [&] {
    if (comm.rank() != 0) return;
    for (std::string* path : {&o.output, &o.n_best}) *path = destination(*path);
    check_paths(o);
    model = open_fine_tuned(o.inference);
    check_model_survives(o, model.model.directory.directory);
    if (o.min_probability) require_option_of(model.kind, "min-probability", o.inference.model);
    model.options.min_probability = o.min_probability;
    evaluator = traits_of(model.kind)
                    .make_predictor(request_of(o, model.kind), model.options, model.of_task());
  });
  if (comm.rank() != 0) return serve_inference(o.inference, comm);
  load_fine_tuned(model, o.inference, evaluator->head(), evaluator->max_length(), comm);
  comm.note("evaluation", -1);
  BatchDispatcher dispatcher(*model.engine, *model.stages);
  Progress progress(o);
  const double start = seconds_now();
  evaluator->open_outputs(
      [&](const std::string& path) { return std::make_unique<Output>(path, o.overwrite); });
  dispatcher.evaluate(*evaluator, model.micro_batch_tokens, [&](double share) {
    if (!progress.show(*evaluator, share)) return true;
    for (const std::string& line : evaluator->early_warnings()) log(line);
    return true;
  });
  evaluator->commit_outputs();
  log_outcome(*evaluator, seconds_now() - start, dispatcher.cache_hits());
  clear_progress();
  dispatcher.done();
  end_inference(model);
  open_console(o.quiet);
}

}  // namespace

void add_predict_command(Subcommand program, int&) {
  const Subcommand command = program.add_subcommand(
      "predict", "Predict labels or answers for new data with a fine-tuned model");
  auto o = std::make_shared<PredictOptions>();
  bind_inference_options(command, o->inference);
  command
      .add_option(
          "--input", o->input,
          "CSV, TSV, JSONL, JSON, a text per line, SQuAD JSON, also as .gz or .zst; - is standard "
          "input")
      .required()
      .type_name("FILE|-")
      .group("Data");
  one_of(command.add_option("--input-format", o->input_format,
                            "form of the rows; auto: by suffix and content, standard input by its "
                            "first line"),
         {"auto", "csv", "tsv", "jsonl", "json", "text"})
      .group("Data")
      .default_str("auto");
  bind_row_options(command, o->rows);
  command
      .add_option(
          "--output", o->output,
          "CSV, or JSON Lines if it ends in .jsonl; for qa JSON {id: answer}; - is standard output")
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
  number_between(
      command, "--min-probability", o->min_probability, 0, 1,
      "classification: less likely labels become 'unsure'; the column best_label still has them")
      .type_name("P")
      .group("Output");
  command
      .add_flag("--json-lines", o->json_lines,
                "JSON Lines in place of CSV, as for an --output that ends in .jsonl")
      .group("Output");
  command
      .add_flag("--spreadsheet-safe", o->spreadsheet_safe,
                "CSV: an apostrophe before values that a spreadsheet would take for formulas")
      .group("Output");
  command
      .add_flag("--stream", o->stream,
                "answer rows as they come (default: if standard output is a terminal)")
      .group("Output");
  command.add_option("--nbest", o->n_best, "qa: write the n-best lists here")
      .type_name("FILE")
      .group("Output");
  command.add_flag("--overwrite", o->overwrite, "replace existing files").group("Output");
  command.add_flag("--quiet", o->quiet, "no log on standard error, only warnings").group("Output");
  command.add_flag("--no-progress", o->no_progress, "no progress line").group("Output");
  command.footer(
      "Examples:\n"
      "  finetune predict --model runs/a/model --input new.csv --output labels.csv\n"
      "  echo 'RONA BRACKETS' | finetune predict --model runs/a/model --input - --output -\n"
      "  finetune predict --model runs/b/model --input questions.json --output answers.json");
  command.callback([o, command] { run(*o, command.given()); });
}

}  // namespace finetune

// finetune next: the rows worth labelling next.
#include <algorithm>
#include <memory>

#include "cli/command.h"
#include "cli/options/answer_options.h"
#include "cli/options/option_binding.h"
#include "cli/output/output_file.h"
#include "cli/standard_output.h"
#include "cli/world.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/files/files.h"
#include "core/log.h"
#include "data/input_file.h"
#include "inference/batch_dispatch.h"
#include "tasks/registry.h"
#include "train/options/table/option_table.h"
#include "train/record/progress.h"
#include "train/record/training_rows.h"
#include "train/run/metrics_files.h"

namespace finetune {
namespace {

struct NextOptions : AnswerOptions {
  std::string input, output;
  std::string input_format = "auto";
  int64_t rows = 200;
  bool spreadsheet_safe = false;
};

const OptionRow<NextOptions> kNextRows[] = {
    {{.name = "input",
      .group = "Data",
      .required = commands::all,
      .common = commands::all,
      .help = "rows without labels: CSV, TSV, JSONL, JSON, a text per line, also as .gz or .zst; - "
              "is standard input",
      .value = "FILE|-"},
     &NextOptions::input},
    {{.name = "input-format",
      .group = "Data",
      .help = "form of the rows; auto: by suffix and content, standard input by its first line",
      .words = "auto|csv|tsv|jsonl|json|text"},
     &NextOptions::input_format},
    {{.name = "output",
      .group = "Output",
      .required = commands::all,
      .common = commands::all,
      .help =
          "CSV of the chosen rows, the best first, with their count, likely label and reason; - "
          "is standard output",
      .value = "FILE|-"},
     &NextOptions::output},
    {{.name = "rows",
      .group = "Output",
      .common = commands::all,
      .help = "how many rows to choose, at most 2,000",
      .value = "N",
      .range = between(1, double(kMostNextRows))},
     &NextOptions::rows},
    {{.name = "spreadsheet-safe",
      .group = "Output",
      .help = "an apostrophe before values that a spreadsheet would take for formulas"},
     &NextOptions::spreadsheet_safe},
};

PredictionRequest request_of(const NextOptions& o, const RowOptions& rows) {
  PredictionRequest request;
  request.input = o.input;
  request.output = o.output;
  request.rows = rows;
  request.rows.format = parse_row_format(o.input_format);
  request.spreadsheet_safe = o.spreadsheet_safe;
  request.next_rows = o.rows;
  request.column_option = given_column_option(o);
  return request;
}

// Reads the files of --train. Their columns may have the names that options give to the input's
// columns, or the names that the model was trained with.
void take_named_rows(const NextOptions& o, const FineTuned& model, const TaskOptions& own,
                     Evaluator& evaluator) {
  TaskOptions labelled = model.options;
  for (const fs::path file : o.shared.train) labelled.train_files.push_back(rereadable(file));
  try {
    evaluator.take_training_rows(labelled);
  } catch (const Error& fault) {
    const bool renamed = is_given(o, "text-column") || is_given(o, "text-pair-column") ||
                         is_given(o, "label-column");
    if (fault.code() != ExitCode::data || !renamed) throw;
    labelled.text_columns = own.text_columns;
    labelled.text_pair_column = own.text_pair_column;
    labelled.label_column = own.label_column;
    try {
      evaluator.take_training_rows(labelled);
    } catch (const Error&) {
      throw fault;
    }
  }
}

// Reads the rows that have labels: of --train, or of the files that the model's run read.
void take_labelled_rows(const NextOptions& o, const FineTuned& model, const TaskOptions& own,
                        Evaluator& evaluator) {
  if (!o.shared.train.empty()) return take_named_rows(o, model, own, evaluator);
  const TrainingRowsOfModel of_run = training_rows_of(model.model.directory.directory);
  if (of_run.options) return evaluator.take_training_rows(*of_run.options);
  warn("which rows have labels already is not known: ", of_run.why,
       "; --train names the files with labels");
}

std::unique_ptr<Evaluator> open_chooser(NextOptions& o, FineTuned& model) {
  o.output = link_destination(o.output);
  check_output_file(o.output, {o.input}, o.shared.overwrite);
  if (o.input == "-" && std::count(o.shared.train.begin(), o.shared.train.end(), "-") > 0) {
    throw usage_error("--input - and --train - both read standard input; name a file");
  }
  if (o.shared.json && o.output == "-") {
    throw usage_error("--json and --output - both write to standard output; name a file");
  }
  TaskOptions own;
  model = open_fine_tuned(o, &own);
  check_model_survives(o.output, model.model.directory.directory, o.shared.train);
  const TaskTraits& task = traits_of(model.kind);
  if (task.make_chooser == nullptr) {
    throw usage_error("finetune next is for classification; ", o.inference.model,
                      " was trained for ", task.title);
  }
  auto evaluator =
      task.make_chooser(request_of(o, model.options.rows), model.options, model.of_task());
  take_labelled_rows(o, model, own, *evaluator);
  return evaluator;
}

void run(NextOptions& o, std::string_view given) {
  Communicator& comm = world();
  FineTuned model;
  std::unique_ptr<Evaluator> evaluator;
  begin_inference(comm, o.inference, given, [&] { evaluator = open_chooser(o, model); });
  if (comm.rank() != 0) return serve_inference(o.inference, comm);
  load_fine_tuned(model, o.inference, evaluator->head(), evaluator->max_length(), comm);
  comm.note("evaluation", -1);
  enable_progress(!o.shared.no_progress);
  BatchDispatcher dispatcher(*model.engine, *model.stages);
  const double start = seconds_now();
  evaluator->open_outputs(
      [&](const std::string& path) { return open_output_file(path, o.shared.overwrite); });
  dispatcher.evaluate(*evaluator, model.micro_batch_tokens, [&](double share) {
    const double seconds = seconds_now() - start;
    if (share <= 0 || seconds < kSecondsWithoutProgress) return true;
    open_console(o.shared.quiet);
    show_progress(progress_parts("looking", share, seconds));
    return true;
  });
  dispatcher.done();
  end_inference(model);
  evaluator->commit_outputs();
  clear_progress();
  open_console(o.shared.quiet);
  for (const std::string& line : evaluator->describe_samples()) log(line);
  for (const std::string& line : evaluator->warnings()) warn(line);
  if (!o.shared.json) return;
  const Metrics metrics = evaluator->metrics();
  write_standard_output(json_line(NamedNumbers(metrics.begin(), metrics.end())) + "\n");
}

}  // namespace

void add_next_command(Subcommand program, int&) {
  const Subcommand command =
      program.add_subcommand("next", "Choose the rows that are worth labelling next");
  auto o = std::make_shared<NextOptions>();
  add_model_option(command, commands::next, *o);
  add_options(command, kNextRows, *o);
  add_answer_options(command, commands::next, *o);
  command.footer(
      "Examples:\n"
      "  finetune next --model runs/a --input new.csv --rows 200 --output next.csv\n"
      "  finetune next --model runs/a --input new.csv --output next.csv --json\n"
      "\n"
      "Chosen are rows whose label the model is unsure of, whose text many rows have, and that\n"
      "differ from each other. Rows that have a label, and rows with the text of a row that the\n"
      "model's run has read, are left out. Label the chosen ones, add them to the training rows,\n"
      "train again, and ask for the next ones.");
  command.callback([o, command] {
    take_answer_options(command, *o);
    append_given(command, kNextRows, *o, o->given);
    run(*o, command.given());
  });
}

}  // namespace finetune

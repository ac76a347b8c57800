// finetune evaluate
#include <cstdio>
#include <memory>

#include "cli/command.h"
#include "cli/inference_binding.h"
#include "core/files.h"
#include "core/log.h"
#include "tasks/registry.h"
#include "train/metrics_files.h"

namespace finetune {
namespace {

struct EvaluateOptions {
  InferenceOptions inference;
  std::vector<std::string> data;
  std::string output;
  int64_t max_samples = 0;
  bool skip_bad_rows = false;
  bool ignore_unknown_labels = false;
  bool json = false;
};

void run(const EvaluateOptions& o) {
  FineTuned model = open_fine_tuned(o.inference);
  TaskOptions options = model.options;
  options.eval_files.assign(o.data.begin(), o.data.end());
  options.max_eval_samples = o.max_samples;
  options.skip_bad_rows = o.skip_bad_rows;
  options.ignore_unknown_labels = o.ignore_unknown_labels;
  auto task = make_task(model.kind, options, *model.model.tokenizer, model.model.config, true);
  load_fine_tuned(model, o.inference, task->head());
  model.reserve(task->max_length());
  open_console(false);
  for (const auto& line : task->describe()) log(line);
  auto evaluation = task->start_evaluation();
  model.engine->evaluate(*task->eval_set(), *evaluation, model.micro_batch_tokens, [](double share) {
    show_progress(concat("evaluating  ", format_fixed(100 * share, 0), " %"));
    return true;
  });
  clear_progress();
  Metrics metrics = evaluation->metrics();
  if (!o.output.empty()) {
    create_directories(o.output);
    evaluation->write_files(o.output);
    write_metrics(fs::path(o.output) / "metrics.json", metrics);
  }
  if (o.json) {
    std::puts(json_line(NamedNumbers(metrics.begin(), metrics.end())).c_str());
    return;
  }
  for (const auto& [name, value] : metrics) {
    std::printf("%-28s %s\n", name.c_str(), format_number(value).c_str());
  }
}

}  // namespace

void add_evaluate_command(CLI::App& app, int&) {
  auto* command = app.add_subcommand("evaluate", "Metrics of a fine-tuned model on data with labels or answers");
  auto o = std::make_shared<EvaluateOptions>();
  bind_inference_options(*command, o->inference);
  command->add_option("--data", o->data, "CSV, TSV, JSONL, or SQuAD JSON")->required()
      ->type_name("FILE ...")->expected(1, 1 << 20);
  command->add_option("--label-column", o->inference.label_column, "column of the label (default: as trained)");
  command->add_option("--max-eval-samples", o->max_samples, "use the first N examples")->check(CLI::PositiveNumber);
  command->add_flag("--skip-bad-rows", o->skip_bad_rows, "drop and count unusable rows");
  command->add_flag("--ignore-unknown-labels", o->ignore_unknown_labels, "count labels the model lacks as wrong");
  command->add_option("--output", o->output, "directory for metrics.json and the predictions")->type_name("DIR");
  command->add_flag("--json", o->json, "print the metrics as one JSON object");
  command->footer(
      "Examples:\n"
      "  finetune evaluate --model runs/a/model --data test.csv\n"
      "  finetune evaluate --model runs/b/model --data dev-v2.0.json --output runs/b/test --json");
  command->callback([o] { run(*o); });
}

}  // namespace finetune

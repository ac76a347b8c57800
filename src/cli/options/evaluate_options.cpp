// Names, ranges and help of the options of finetune evaluate.
#include "cli/options/evaluate_options.h"

#include "cli/options/number_option.h"

namespace finetune {

void bind_evaluate_options(Subcommand command, EvaluateOptions& o) {
  const auto add_files = [&](const char* name, std::vector<std::string>& files, const char* help) {
    return command.add_option(name, files, help).type_name("FILE...").expected(1, 1 << 20);
  };
  bind_inference_options(command, o.inference);
  add_files("--data", o.data, "CSV, TSV, JSONL, or SQuAD JSON; several files are joined")
      .required()
      .group("Data");
  whole_number(command.add_option("--max-eval-samples", o.max_samples,
                                  "use the first N examples (qa: questions)"),
               1)
      .group("Data");
  bind_row_options(command, o.rows);
  add_files("--train", o.train,
            "training data, for the baselines and the metrics of new texts (default: the run's)")
      .group("Data");
  command
      .add_flag(
          "--no-ngram-baseline", o.no_ngram_baseline,
          "classification: leave out the linear model on n-grams that the result is compared with")
      .group("Data");
  command
      .add_flag("--ignore-unknown-labels", o.ignore_unknown_labels,
                "count labels unknown to the model as wrong, instead of failing")
      .group("Data");
  command
      .add_flag("--normalize-labels", o.normalize_labels,
                "classification: join labels as train does (default: as trained)")
      .group("Data");
  number_between(command, "--min-probability", o.min_probability, 0, 1,
                 "classification: accuracy of the labels that have at least this probability, and "
                 "their share")
      .type_name("P")
      .group("Answers");
  number_between(command, "--target-accuracy", o.target_accuracy, 0, 1,
                 "classification: find the least --min-probability with this accuracy")
      .type_name("A")
      .group("Answers");
  command
      .add_option("--slice", o.slices,
                  "classification: metrics for each value of this column; seen:NAME: values in "
                  "--seen-in, and others")
      .type_name("NAME")
      .expected(1)
      .take_all()
      .group("Answers");
  add_files("--seen-in", o.seen_in, "the files of training, for --slice seen:NAME")
      .group("Answers");
  command
      .add_option("--assert", o.assertions,
                  "fail with exit 7 unless a metric holds: \"eval_f1>=88\"; repeatable")
      .type_name("METRIC>=X")
      .expected(1)
      .take_all()
      .group("Regression gates");
  add_files("--baseline", o.baselines,
            "earlier runs or evaluations (metrics.json or directory) for --tolerance; of "
            "several, mean and noise")
      .group("Regression gates");
  command
      .add_option(
          "--tolerance", o.tolerances,
          "how much worse than --baseline a metric may be: eval_f1=0.3, or eval_f1=1%; repeatable")
      .type_name("METRIC=X")
      .expected(1)
      .take_all()
      .group("Regression gates");
  command
      .add_option("--junit", o.junit, "write the gates as a JUnit file, whether they hold or not")
      .type_name("FILE")
      .group("Regression gates");
  command.add_option("--output", o.output, "directory for metrics.json and the predictions")
      .type_name("DIR")
      .group("Output");
  command.add_flag("--overwrite", o.overwrite, "replace an earlier evaluation in --output")
      .group("Output");
  command.add_flag("--json", o.json, "print model, options and metrics as one JSON object")
      .group("Output");
  command.add_flag("--quiet", o.quiet, "no log on standard error, only warnings").group("Output");
  command.add_flag("--no-progress", o.no_progress, "no progress line").group("Output");
}

std::vector<ConfigItem> options_given(const EvaluateOptions& o) {
  const InferenceOptions& i = o.inference;
  std::vector<ConfigItem> items = {{"model", i.model}, {"data", o.data}};
  auto add = [&](const char* name, const auto& value) {
    if (value) items.push_back({name, *value});
  };
  auto add_other = [&](const char* name, const auto& value, const auto& unless) {
    if (value != unless) items.push_back({name, value});
  };
  add("text-column", i.text_columns);
  add("text-pair-column", i.text_pair_column);
  add("label-column", i.label_column);
  add("max-length", i.max_length);
  add("long-text", i.long_text);
  add("window-stride", i.window_stride);
  add("max-windows", i.max_windows);
  add("doc-stride", i.doc_stride);
  add("squad-version", i.squad_version);
  if (!o.train.empty()) items.push_back({"train", o.train});
  add_other("no-ngram-baseline", o.no_ngram_baseline, false);
  add("min-probability", o.min_probability);
  add("target-accuracy", o.target_accuracy);
  if (!o.slices.empty()) items.push_back({"slice", o.slices});
  if (!o.seen_in.empty()) items.push_back({"seen-in", o.seen_in});
  add_other("no-calibration", i.no_calibration, false);
  add_other("no-ngram-mix", i.no_ngram_mix, false);
  add_other("max-eval-samples", o.max_samples, 0);
  add_other("delimiter", o.rows.delimiter, "auto");
  add_other("encoding", o.rows.encoding, "auto");
  add_other("skip-bad-rows", o.rows.skip_bad_rows, false);
  add_other("ignore-unknown-labels", o.ignore_unknown_labels, false);
  add_other("normalize-labels", o.normalize_labels, false);
  add_other("tensor-shards", tensor_shards_of(i), 1);
  add_other("batch-size", i.batch_size, 0);
  add_other("precision", i.precision, "auto");
  add_other("device", i.device, "auto");
  add_other("threads", i.threads, 0);
  return items;
}

}  // namespace finetune

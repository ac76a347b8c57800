// The classification task: data description, training arrays, metrics, config.
#include "tasks/classification/classification_task.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "core/error.h"
#include "core/failure.h"
#include "core/log.h"
#include "core/text/counted.h"
#include "core/text/text.h"
#include "tasks/classification/calibration/fit_calibration.h"
#include "tasks/classification/drift/drift_file.h"
#include "tasks/classification/evaluation/classification_evaluator.h"
#include "tasks/classification/model_options.h"
#include "tasks/classification/side_columns/unread_values.h"
#include "tasks/labels/name_texts.h"
#include "tasks/objective.h"
#include "tasks/repeated_texts.h"
#include "tasks/scores/promise_file.h"
#include "tasks/target_scale.h"
#include "tasks/texts/cut_texts.h"
#include "tasks/texts/encoded_rows.h"

namespace finetune {
namespace {

constexpr size_t kTextsAtOnce = 4096;

std::vector<float> balanced_weights(const std::vector<int32_t>& labels, int64_t classes) {
  std::vector<int64_t> counts(static_cast<size_t>(classes));
  for (int32_t label : labels) ++counts[size_t(label)];
  int64_t occurring = classes - std::count(counts.begin(), counts.end(), 0);
  std::vector<float> weights;
  for (int64_t count : counts) {
    weights.push_back(
        count == 0 ? 1.0f : float(double(labels.size()) / (double(occurring) * double(count))));
  }
  return weights;
}

CutTexts texts_of(const SampleSet& set, const ClassificationData& data,
                  const TaskOptions& options) {
  CutTexts texts;
  texts.max_length = data.max_length;
  texts.positions = data.positions;
  texts.long_texts = options.long_texts;
  texts.add(set);
  return texts;
}

std::string describe_side(const char* name, const ClassificationSide& side, const CutTexts& texts) {
  std::string line =
      concat(name, ": ", counted(side.set.examples, "row"), ", ", describe_texts(texts));
  if (side.dropped > 0) line += concat(", ", counted(side.dropped, "unusable row"), " dropped");
  return line;
}

// Counts rows with a label that the model does not know.
int64_t rows_with_unknown(const ClassificationData& data) {
  int64_t known = data.labels.size(), rows = 0;
  for (int32_t label : data.eval.labels) rows += label >= known;
  for (int64_t i = 0; i < data.eval.label_sets.size(); ++i) {
    auto set = data.eval.label_sets[i];
    rows += !set.empty() && set.back() >= known;
  }
  return rows;
}

std::vector<std::string> describe_data(const ClassificationData& data, const TaskOptions& options) {
  std::vector<std::string> lines;
  bool trains = !options.train_files.empty();
  const CutTexts train = texts_of(data.train.set, data, options);
  const CutTexts eval = texts_of(data.eval.set, data, options);
  if (trains) lines.push_back(describe_side("train", data.train, train));
  if (data.has_eval && options.folds == 0) {
    lines.push_back(describe_side("eval", data.eval, eval));
  }
  for (const auto& [name, texts] : {std::pair("train", &train), {"eval", &eval}}) {
    if (texts == &eval && options.folds > 0) continue;
    for (std::string& line : text_warnings(name, *texts)) lines.push_back(std::move(line));
  }
  for (size_t i = 0; i < data.train.numbers.size(); ++i) {
    for (std::string& line : describe_numbers(data.train.numbers[i], data.number_columns[i])) {
      lines.push_back(std::move(line));
    }
  }
  if (!data.split.empty()) lines.push_back(data.split);
  const std::vector<uint8_t>& repeated = data.eval.repeated;
  std::string line = describe_repeated(
      std::count(repeated.begin(), repeated.end(), 1), int64_t(repeated.size()), "rows",
      data.split.empty() ? "" : "--eval-split distinct keeps equal texts on one side");
  if (!line.empty()) lines.push_back(std::move(line));
  if (!data.split_fault.empty()) lines.push_back(concat("warning: ", data.split_fault));
  if (trains && !data.has_eval && options.fits_calibration &&
      data.problem != ProblemType::regression) {
    lines.push_back(
        concat("no evaluation data: the result is not measured, its probabilities are "
               "not calibrated",
               options.ngram_mix ? ", nothing is mixed with n-grams" : "",
               "; --eval-fraction 0.1 holds rows out for that"));
  }
  lines.push_back(describe_labels(data, options));
  if (!data.joined_labels.empty()) lines.push_back(data.joined_labels);
  for (const std::string& warning : data.label_warnings) {
    lines.push_back(concat("warning: ", warning));
  }
  if (!data.target_scale.is_identity()) {
    lines.push_back(concat("targets are learnt as (number - ", data.target_scale.mean, ") / ",
                           data.target_scale.scale, "; metrics and the model give numbers"));
    const std::string fault = coarse_numbers(data.target_scale.mean, data.target_scale.scale);
    if (!fault.empty()) lines.push_back("warning: " + fault);
  }
  if (trains && data.keeps_head) {
    lines.push_back(!data.head_changes.empty()
                        ? data.head_changes
                        : "the model's head fits and is kept, with its label order (--reinit-head "
                          "starts with a new one)");
  }
  if (!data.unknown_labels.empty()) {
    lines.push_back(describe_unknown_labels(data, rows_with_unknown(data), data.eval.set.examples));
  }
  return lines;
}

TokenizedSamples samples_of_names(const Tokenizer& tokenizer, const std::vector<std::string>& names,
                                  int64_t max_length) {
  const std::vector<std::string> texts = texts_of_names(names);
  const std::vector<std::string_view> values(texts.begin(), texts.end());
  std::vector<RowValues> rows;
  for (const std::string_view& value : values) rows.emplace_back(&value, 1);
  return encode_rows(tokenizer, rows, TextColumns{{0}, {}}, max_length).samples;
}

}  // namespace

ClassificationTask::ClassificationTask(const TaskOptions& options, const Tokenizer& tokenizer,
                                       const EncoderConfig& config, bool model_head)
    : options_(options), data_(load_classification_data(options, tokenizer, config, model_head)) {
  data_.trained_texts = {};  // the evaluation rows are marked by now; frees memory for training
  if (options.train_files.empty()) {
    class_weights_ = stored_class_weights(config, data_.labels.size());
  } else if (options.balanced_class_weights) {
    class_weights_ = balanced_weights(data_.train.labels, data_.labels.size());
  }
  if (data_.has_eval && !options.train_files.empty()) majority_ = majority_of(data_, data_.train);
  const std::vector<double>& targets = data_.train.targets;
  const auto is_first = [&](double target) { return target == targets[0]; };
  if (!targets.empty() && std::all_of(targets.begin(), targets.end(), is_first)) {
    data_.label_warnings.push_back(concat("every training row has the number ",
                                          format_measure(targets[0]),
                                          ": there is nothing to learn"));
  }
  if (data_.problem == ProblemType::regression && options.standardized_targets) {
    data_.target_scale = scale_of(data_.train.targets);
    data_.target_scale.has_trained_head = data_.keeps_head;
  }
  for (double target : data_.train.targets) {
    train_targets_.push_back(float(data_.target_scale.learnt(target)));
  }
  data_.train.targets = {};
  if (!data_.train.set.first_window.empty()) {
    windows_ = window_targets(data_.train, train_targets_);
  }
  const bool names_are_texts = data_.problem == ProblemType::single_label &&
                               options.text_pair_column.empty() && !options.train_files.empty();
  if (names_are_texts) {
    label_names_ = samples_of_names(tokenizer, data_.labels.names(), data_.max_length);
  }
  if (options_.folds > 0) {
    data_.eval.folds = folds_of_samples(training_arrays(), options_.folds);
    data_.split = concat(options_.folds,
                         " folds: each row is measured by a head and n-grams that "
                         "were fitted without its fold; the model is fitted to all");
  }
  // With folds, heads and n-grams know less than the model: later rows would always differ.
  if (data_.has_eval && options.folds == 0 && !options.train_files.empty()) {
    data_.seen_tokens =
        std::make_shared<SeenTokens>(data_.train.set.samples, tokenizer.special().unk);
  }
  lines_ = describe_data(data_, options_);
}

TrainingArrays ClassificationTask::training_arrays() const {
  const ClassificationSide& train = data_.train;
  TrainingArrays arrays;
  arrays.kind = kind();
  arrays.problem = data_.problem;
  arrays.head = head();
  arrays.label_smoothing = float(options_.label_smoothing);
  arrays.target_scale = data_.target_scale;
  arrays.head_rows = data_.head_rows;
  arrays.samples = train.set.samples;
  arrays.labels = windows_ ? windows_->labels : train.labels;
  arrays.targets = windows_ ? windows_->targets : train_targets_;
  if (windows_) arrays.sample_weights = windows_->weights;
  if (data_.problem == ProblemType::multi_label) {
    const LabelSets& sets = windows_ ? windows_->label_sets : train.label_sets;
    arrays.set_offsets = sets.offsets;
    arrays.set_ids = sets.ids;
  }
  arrays.class_weights = class_weights_;
  return arrays;
}

void ClassificationTask::release_training_arrays() {
  ClassificationSide& train = data_.train;
  train.set.samples = {};
  train.set.first_window = {};
  windows_.reset();
  train.labels = {};
  train.label_sets = {};
  train_targets_ = {};
}

void ClassificationTask::take_loss_options(const TaskOptions& options) {
  options_.label_smoothing = options.label_smoothing;
  options_.balanced_class_weights = options.balanced_class_weights;
  options_.fits_calibration = options.fits_calibration;
  options_.tunes_thresholds = options.tunes_thresholds;
  options_.ngram_mix = options.ngram_mix;
  calibration_ = {};
  mix_.reset();
  drift_.clear();
  class_weights_.clear();
  if (options.balanced_class_weights) {
    class_weights_ = balanced_weights(data_.train.labels, data_.labels.size());
  }
}

std::unique_ptr<Evaluator> ClassificationTask::start_evaluation() {
  FINETUNE_CHECK(data_.has_eval);
  using Keeps = ClassificationEvaluator::Keeps;
  return ClassificationEvaluator::of_memory(data_, class_weights_, options_.label_smoothing,
                                            options_.multi_label_separator,
                                            options_.ngram_mix          ? Keeps::all
                                            : options_.fits_calibration ? Keeps::held_out
                                                                        : Keeps::nothing);
}

ClassificationTask::TrainedNgrams::TrainedNgrams(const Descriptor& descriptor)
    : file(concat("/proc/self/fd/", descriptor.number()), ExitCode::device), scorer([&] {
        StoredNgrams stored = read_ngram_file(file.text(), "n-grams");
        sha256 = stored.sha256;
        return std::move(stored.model);
      }()) {}

Baselines ClassificationTask::baselines() {
  const bool needs_model = options_.ngram_mix && !ngrams_;
  if (baselines_ && !needs_model) return *baselines_;
  if (!options_.baselines || !data_.eval.texts || options_.train_files.empty()) return {};
  const TextRows* train = options_.ngram_baseline ? data_.train.texts.get() : nullptr;
  Descriptor model(needs_model ? ::memfd_create("ngrams", MFD_CLOEXEC) : -1);
  if (needs_model && model.number() < 0) {
    throw device_error("the linear model on n-grams failed: its file: ", start_failure(errno));
  }
  const Descriptor* file = model.number() < 0 ? nullptr : &model;
  baselines_ = options_.folds > 0 ? baselines_of_folds(data_, majority_, train, *data_.eval.texts,
                                                       file, fold_margins_)
                                  : baselines_of(data_, majority_, train, *data_.eval.texts, file);
  if (model.number() >= 0 && ::lseek(model.number(), 0, SEEK_END) > 0) {
    ngrams_ = std::make_unique<TrainedNgrams>(model);
  }
  return *baselines_;
}

std::string ClassificationTask::best_metric() const {
  switch (data_.problem) {
    case ProblemType::single_label:
      return "eval_accuracy";
    case ProblemType::multi_label:
      return "eval_f1_micro";
    case ProblemType::regression:
      return "eval_mse";
  }
  return "";
}

bool ClassificationTask::larger_is_better(const std::string& name) const {
  const std::string metric = measure_of_all_rows(name);
  return metric != "eval_loss" && metric != "eval_mse" && metric != "eval_mae" &&
         metric != "eval_ece" && metric != "eval_brier" && !metric.ends_with("_sd");
}

std::vector<std::string> ClassificationTask::metric_names() const {
  ClassificationOptions measured;
  measured.folds = options_.folds;
  std::vector<std::string> names = classification_metric_names(data_.problem, measured);
  if (data_.eval.repeated.empty()) return names;
  for (std::string& name : unseen_metric_names(names)) names.push_back(std::move(name));
  return names;
}

CalibrationReport ClassificationTask::calibrate(Evaluator& evaluator, Metrics& metrics) {
  auto& own = dynamic_cast<ClassificationEvaluator&>(evaluator);
  CalibrationReport report;
  if (options_.fits_calibration && data_.problem != ProblemType::regression) {
    report = fit(own, metrics);
  }
  drift_ = drift_file(own);
  return report;
}

std::string ClassificationTask::drift_file(const ClassificationEvaluator& evaluator) const {
  const auto summary = evaluator.row_sample(mix_ ? 1 : calibration_.temperature);
  if (!summary) return "";
  TaskOptions answered;
  answered.max_length = data_.max_length;
  answered.long_texts = options_.long_texts;
  answered.calibration = calibration_;
  if (mix_) answered.mix = {*mix_, ngrams_->sha256};
  return drift_file_of(*summary, *data_.seen_tokens, answers_in_words(answered));
}

CalibrationReport ClassificationTask::fit(ClassificationEvaluator& own, Metrics& metrics) {
  std::string why_no_mix;
  std::vector<float> margins;
  if (options_.ngram_mix) margins = eval_margins(own, why_no_mix);
  CalibrationFit fit = fit_calibration(own.held_out(margins), own.held_out(margins, false),
                                       options_.tunes_thresholds);
  calibration_ = fit.calibration;
  mix_ = fit.mix;
  for (const auto& metric : fit.metrics) metrics.insert(metric);
  CalibrationReport& report = fit.report;
  if (!why_no_mix.empty()) {
    report.line = concat("no mix with n-grams: ", why_no_mix, "; ", report.line);
    report.facts.emplace_back("ngram_mix", concat("none: ", why_no_mix));
    report.why_no_mix = why_no_mix;
  }
  if (!mix_) {
    if (!fit.details.empty()) log_to_file(fit.details);
    return report;
  }
  const Metrics alone = own.metrics();
  metrics.merge(unmixed_metrics(alone));
  own.mix(fit.part_mixes, margins);
  for (const auto& [name, value] : own.metrics()) metrics[name] = value;
  const double before = alone.at("eval_accuracy"), after = metrics.at("eval_accuracy");
  log_to_file(concat("eval_accuracy ", format_fixed(before, 4),
                     " of the model alone, as in the evaluations above, ", format_fixed(after, 4),
                     " together with a linear model on n-grams, as in the result (each row by "
                     "weights that were fitted to other rows); ",
                     fit.details));
  report.line = concat("mixed with n-grams: ", format_fixed(100 * before, 1), " % alone, ",
                       format_fixed(100 * after, 1), " % together; ", report.line);
  return report;
}

std::vector<float> ClassificationTask::eval_margins(const ClassificationEvaluator& evaluator,
                                                    std::string& why) {
  if (!evaluator.can_mix()) {
    why = "the evaluation rows times labels are too many";
    return {};
  }
  baselines();
  if (!ngrams_) {
    why = concat("the linear model on n-grams takes at most ", kMostNgramLabels, " labels");
    return {};
  }
  if (options_.folds > 0) return fold_margins_;
  std::vector<float> margins;
  std::vector<std::string> texts;
  const auto score = [&] {
    const std::vector<float> more = ngrams_->scorer.margins_of(texts);
    margins.insert(margins.end(), more.begin(), more.end());
    texts.clear();
  };
  TextRowReader reader(data_.eval.texts->descriptor());
  for (TextRow row; reader.next(row);) {
    texts.push_back(std::move(row.text));
    if (texts.size() == kTextsAtOnce) score();
  }
  score();
  return margins;
}

std::vector<ModelFile> ClassificationTask::model_files() const {
  std::vector<ModelFile> files;
  if (mix_) files.push_back({std::string(kNgramFile), ngrams_->file.text()});
  if (!drift_.empty()) files.push_back({std::string(kDriftFile), drift_});
  return files;
}

std::vector<std::string> ClassificationTask::calibration_metric_names() const {
  if (!options_.fits_calibration || data_.problem == ProblemType::regression) return {};
  return finetune::calibration_metric_names(options_.tunes_thresholds, options_.ngram_mix);
}

std::string ClassificationTask::config_json() const {
  std::optional<StoredMix> mix;
  if (mix_) mix = {*mix_, ngrams_->sha256};
  return classification_config_json(options_, data_, class_weights_, calibration_, mix);
}

}  // namespace finetune

// Reads texts, holds some out, hides words of the evaluation data.
#include "tasks/masked_language/masked_task.h"

#include <algorithm>

#include "core/error.h"
#include "core/text/counted.h"
#include "core/text/json_value.h"
#include "core/text/text.h"
#include "data/columns/text_columns.h"
#include "data/hold_out.h"
#include "tasks/masked_language/masked_evaluator.h"
#include "tasks/objective.h"
#include "tasks/texts/encoded_rows.h"

namespace finetune {
namespace {

void require_tied_words(const EncoderConfig& config) {
  if (config.head.always_tied) return;
  const JsonValue json = JsonValue::parse(config.source_json);
  if (json["tie_word_embeddings"].as<bool>() != false) return;
  throw model_error(
      "--model: tie_word_embeddings is false in its config.json, but the decoder of masked words "
      "is the word embedding here; choose another model");
}

int32_t mask_of(const Tokenizer& tokenizer) {
  if (tokenizer.special().mask >= 0) return tokenizer.special().mask;
  throw model_error("--model: its vocabulary has no mask token ([MASK]), which stands for hidden ",
                    "words; choose another model");
}

}  // namespace

std::vector<uint8_t> word_kinds(const Tokenizer& tokenizer) {
  std::vector<uint8_t> kinds(size_t(tokenizer.vocabulary_size()));
  for (int32_t id = 0; id < tokenizer.vocabulary_size(); ++id) {
    kinds[size_t(id)] =
        uint8_t(tokenizer.continues_word(id) ? WordKind::continues : WordKind::begins);
  }
  const SpecialTokens& special = tokenizer.special();
  for (int32_t id : {special.cls, special.sep, special.pad, special.unk, special.mask}) {
    if (id >= 0) kinds[size_t(id)] = uint8_t(WordKind::special);
  }
  return kinds;
}

MaskedTask::MaskedTask(const TaskOptions& options, const TaskModel& model)
    : head_{HeadKind::masked, model.config.vocab_size},
      max_length_(
          checked_max_length(options.max_length, model.config, model.tokenizer.special(), false)),
      word_kinds_(word_kinds(model.tokenizer)) {
  require_tied_words(model.config);
  masking_.seed = options.seed;
  masking_.probability = options.mask_probability;
  masking_.words = model.tokenizer.vocabulary_size();
  masking_.mask_id = mask_of(model.tokenizer);
  masking_.whole_words = options.whole_words;
  read(options, model.tokenizer);
  require_words(options);
  const bool distinct = options.distinct_texts;
  if (!distinct) {
    train_.repeated = repeated_texts(train_.set);
    eval_.repeated = repeated_texts(eval_.set);
  }
  const int64_t positions = model.config.max_length();
  lines_ = describe_texts("train", train_, max_length_, positions, distinct);
  if (has_eval_) {
    for (std::string& line : describe_texts("eval", eval_, max_length_, positions, distinct)) {
      lines_.push_back(std::move(line));
    }
  }
  if (has_eval_) warn_of_trained_texts(options);
  lines_.push_back(concat(
      "hidden: ", format_fixed(100 * masking_.probability, 1), " % of the tokens, ",
      masking_.whole_words ? "in whole words" : "piece by piece", ", chosen anew each epoch"));
  hide_evaluation_words();
}

// Shorter than describe_repeated(), because there are no metrics without these texts.
void MaskedTask::warn_of_trained_texts(const TaskOptions& options) {
  const int64_t count = trained_texts(train_.set, eval_.set), of = eval_.set.samples.size();
  if (10 * count <= of) return;
  lines_.push_back(concat("warning: eval: ", count, " of ", of, " texts (",
                          format_fixed(100 * double(count) / double(of), 1),
                          " %) are trained on, too: perplexity is that of texts of both kinds",
                          options.eval_files.empty() ? "; --distinct holds out others" : ""));
}

void MaskedTask::require_words(const TaskOptions& options) const {
  const std::vector<int32_t>& ids = train_.set.samples.ids;
  const bool any = std::any_of(ids.begin(), ids.end(), [&](int32_t id) {
    return word_kinds_[size_t(id)] != uint8_t(WordKind::special);
  });
  if (any) return;
  throw data_error(options.train_files[0].name.string(),
                   ": its texts have no word that could be hidden: the model's vocabulary knows ",
                   "none of them");
}

void MaskedTask::read(const TaskOptions& options, const Tokenizer& tokenizer) {
  const bool split = options.eval_files.empty() && options.eval_fraction > 0;
  train_ = read_texts(options.train_files, options, tokenizer, max_length_,
                      split ? 0 : options.max_train_samples);
  if (split) hold_out_texts(options);
  if (options.eval_files.empty()) return;
  eval_ = read_texts(options.eval_files, options, tokenizer, max_length_, options.max_eval_samples);
  has_eval_ = true;
}

void MaskedTask::hold_out_texts(const TaskOptions& options) {
  const int64_t count = train_.set.samples.size();
  HoldOut parts = hold_out(count, options.eval_fraction, options.seed);
  if (parts.train.empty() || parts.eval.empty()) {
    throw data_error(options.train_files[0].name.string(), ": its ", counted(count, "text"),
                     " cannot be divided by --eval-fraction ", options.eval_fraction);
  }
  auto cut = [](std::vector<uint32_t>& numbers, int64_t limit) {
    if (limit > 0 && int64_t(numbers.size()) > limit) numbers.resize(size_t(limit));
  };
  cut(parts.train, options.max_train_samples);
  cut(parts.eval, options.max_eval_samples);
  eval_.set = select_texts(train_.set, parts.eval);
  train_.set = select_texts(train_.set, parts.train);  // keeps the counts of the files
  has_eval_ = true;
}

void MaskedTask::hide_evaluation_words() {
  if (!has_eval_) return;
  const Masking masking(masking_, word_kinds_);
  TokenizedSamples& samples = eval_.set.samples;
  samples.targets.assign(samples.ids.size(), -1);
  std::vector<HiddenPiece> hidden;
  bool any = false;
  for (int64_t i = 0; i < samples.size(); ++i) {
    const size_t begin = size_t(samples.offsets[size_t(i)]);
    const auto ids = std::span(samples.ids).subspan(begin, size_t(samples.length(i)));
    masking.hide(ids, uint32_t(i), Masking::kEvaluation, hidden);
    for (const HiddenPiece& piece : hidden) {
      samples.targets[begin + size_t(piece.place)] = ids[size_t(piece.place)];
      ids[size_t(piece.place)] = piece.replacement;
    }
    any = any || !hidden.empty();
  }
  if (!any) throw data_error("--eval: its texts have no word that could be hidden");
}

TrainingArrays MaskedTask::training_arrays() const {
  TrainingArrays arrays;
  arrays.kind = kind();
  arrays.head = head();
  arrays.samples = train_.set.samples;
  arrays.word_kinds = word_kinds_;
  arrays.masking = masking_;
  return arrays;
}

std::unique_ptr<Evaluator> MaskedTask::start_evaluation() {
  return std::make_unique<MaskedEvaluator>(eval_.set, head_, max_length_);
}

std::vector<std::string> MaskedTask::metric_names() const {
  return masked_metric_names();
}

std::string MaskedTask::config_json() const {
  const JsonObject own = {{"task", "mlm"},
                          {"max_length", max_length_},
                          {"mask_probability", masking_.probability},
                          {"whole_words", masking_.whole_words}};
  return JsonObject{{"finetune", own}}.text();
}

}  // namespace finetune

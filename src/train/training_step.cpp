#include "train/training_step.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "data/packing.h"
#include "data/plan.h"

namespace finetune {
namespace {

constexpr double kClipEpsilon = 1e-6;  // torch.nn.utils.clip_grad_norm_

const Parameter& word_embeddings(const ParameterTable& table) {
  const Parameter* words = table.find("bert.embeddings.word_embeddings.weight");
  FINETUNE_CHECK(words == &table.parameters().back());  // SparseRows are an arena's end
  return *words;
}

}  // namespace

TrainingStep::TrainingStep(Engine& engine, Objective& objective, const StepOptions& options,
                           int64_t batch_size)
    : engine_(engine),
      objective_(objective),
      options_(options),
      tree_(engine.backend(), engine.table().size(), options.virtual_shards),
      words_(word_embeddings(engine.table())) {
  size_t bytes = size_t(engine.table().size()) * sizeof(float);
  m_ = engine.backend().allocate(bytes);
  v_ = engine.backend().allocate(bytes);
  MicroBatchLimits limits =
      micro_batch_limits(objective.samples(), options.micro_batch_tokens, batch_size);
  losses_ = engine.backend().allocate(size_t(limits.sequences) * sizeof(float));
  if (words_.layer < options.lowest_layer) return;
  auto rows = [&](void* arena) { return engine.table().view(static_cast<float*>(arena), words_); };
  lazy_words_ = std::make_unique<LazyRows>(engine.backend(), rows(engine.weights()), rows(m_.get()),
                                           rows(v_.get()));
  engine.on_weights_wanted([this] { settle(); });
}

TrainingStep::~TrainingStep() {
  if (!lazy_words_) return;
  settle();
  engine_.on_weights_wanted(nullptr);
}

void TrainingStep::settle() {
  if (lazy_words_) lazy_words_->settle();
}

float* TrainingStep::first_moments() {
  settle();
  return static_cast<float*>(m_.get());
}

float* TrainingStep::second_moments() {
  settle();
  return static_cast<float*>(v_.get());
}

void TrainingStep::need_rows(std::span<const uint32_t> batch) {
  if (!lazy_words_) return;
  const SampleView& samples = objective_.samples();
  lazy_words_->begin_step();
  for (uint32_t index : batch) {
    lazy_words_->need(
        samples.ids.subspan(size_t(samples.offsets[index]), size_t(samples.length(index))));
  }
  lazy_words_->catch_up();
}

double TrainingStep::norm_of(float* gradients) {
  SparseRows sparse{words_.offset, words_.shape[1], {}};
  if (lazy_words_) sparse.nonzero = lazy_words_->needed();
  return gradient_norm(engine_.backend(), vector(gradients, engine_.table().size()), sparse,
                       block_sums_);
}

void TrainingStep::add_shard_gradient(std::span<const uint32_t> shard, uint32_t first_place,
                                      const DropoutPlan* dropout, float scale, float* gradients) {
  Backend& backend = engine_.backend();
  const SampleView& samples = objective_.samples();
  lengths_.clear();
  for (uint32_t index : shard) lengths_.push_back(samples.length(index));
  double sum = 0;
  for (IndexRange range : micro_batches(lengths_, options_.micro_batch_tokens)) {
    pack(samples, shard.subspan(size_t(range.begin), size_t(range.size())),
         first_place + uint32_t(range.begin), batch_);
    DeviceBatch& device = engine_.upload(batch_);
    float* weights = engine_.weights_as_they_are();
    Tensor logits = engine_.bert().forward(device, weights, dropout, true);
    Tensor losses = vector(static_cast<float*>(losses_.get()), batch_.sequences());
    objective_.loss(backend, batch_, device, logits, scale, losses, logits);
    engine_.bert().backward(device, weights, gradients, logits, dropout, options_.lowest_layer);
    host_losses_.resize(size_t(batch_.sequences()));
    backend.download(host_losses_.data(), losses.data, host_losses_.size() * sizeof(float));
    for (float loss : host_losses_) sum += double(loss);
  }
  shard_losses_.push_back(sum);
}

void TrainingStep::update(int64_t step, double learning_rate, float gradient_scale,
                          float* gradients) {
  Backend& backend = engine_.backend();
  const ParameterTable& table = engine_.table();
  int64_t top = engine_.config().num_hidden_layers + 1;
  AdamW adamw;
  adamw.beta1 = float(options_.adam_beta1);
  adamw.beta2 = float(options_.adam_beta2);
  adamw.epsilon = float(options_.adam_epsilon);
  adamw.step = step + 1;
  adamw.gradient_scale = gradient_scale;
  for (const Parameter& parameter : table.parameters()) {
    if (parameter.layer < options_.lowest_layer) continue;
    adamw.learning_rate =
        float(learning_rate * std::pow(options_.layer_lr_decay, double(top - parameter.layer)));
    adamw.weight_decay = parameter.decay ? float(options_.weight_decay) : 0.0f;
    if (&parameter == &words_) {
      lazy_words_->update(adamw, table.view(gradients, parameter));
      continue;
    }
    auto flat = [&](void* arena) {
      return vector(static_cast<float*>(arena) + parameter.offset, parameter.size());
    };
    backend.adamw(adamw, flat(engine_.weights_as_they_are()), flat(gradients), flat(m_.get()),
                  flat(v_.get()));
  }
}

StepResult TrainingStep::run(int64_t step, std::span<const uint32_t> batch, double learning_rate) {
  const BertConfig& config = engine_.config();
  auto probability = [&](double own) { return options_.dropout >= 0 ? options_.dropout : own; };
  DropoutPlan dropout;
  dropout.seed = options_.seed;
  dropout.step = uint32_t(step);
  dropout.hidden = probability(config.hidden_dropout_prob);
  dropout.attention = probability(config.attention_probs_dropout_prob);
  dropout.head = probability(config.head_dropout());

  StepResult result;
  for (uint32_t index : batch) result.tokens += objective_.samples().length(index);
  double denominator = objective_.loss_denominator(batch);
  float scale = float(1.0 / denominator);
  shard_losses_.clear();
  need_rows(batch);
  for (int64_t k = 0; k < options_.virtual_shards; ++k) {
    IndexRange shard = part(int64_t(batch.size()), options_.virtual_shards, k);
    add_shard_gradient(batch.subspan(size_t(shard.begin), size_t(shard.size())),
                       uint32_t(shard.begin), &dropout, scale, tree_.leaf());
    tree_.push();
  }
  float* gradients = tree_.root();
  result.loss = tree_sum(shard_losses_) / denominator;
  result.gradient_norm = norm_of(gradients);
  result.finite = std::isfinite(result.loss) && std::isfinite(result.gradient_norm);
  if (!result.finite) {
    tree_.clear(false);
    return result;
  }
  double clip = 1.0;
  if (options_.max_grad_norm > 0) {
    clip = std::min(1.0, options_.max_grad_norm / (result.gradient_norm + kClipEpsilon));
  }
  update(step, learning_rate, float(clip), gradients);
  tree_.clear(true);
  return result;
}

}  // namespace finetune

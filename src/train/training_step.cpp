// One training step: micro-batch gradients, reduction, clipping, update.
#include "train/training_step.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

#include "core/clock.h"
#include "core/error.h"
#include "core/switches.h"

namespace finetune {
namespace {

void put(const StepOutcome& outcome, StepResult& result) {
  result.loss = outcome.loss;
  result.gradient_norm = outcome.gradient_norm;
  result.finite = outcome.finite != 0;
  result.stop_request = outcome.stop_request;
}

void finish_outcome(Backend& backend, StepResult& result) {
  StepOutcome outcome;
  backend.finish_download(&outcome, sizeof outcome);
  put(outcome, result);
}

}  // namespace

TrainingStep::TrainingStep(Engine& engine, Objective& objective, Communicator& comm,
                           const StepOptions& options, int64_t batch_size, StagePlan plan)
    : engine_(engine),
      objective_(objective),
      comm_(comm),
      world_(plan.world ? *plan.world : comm),
      options_(options),
      peers_(plan.replicas),
      buckets_(peers_ ? backward_buckets(engine.table(), options.lowest_layer, options.bucket_bytes)
                      : std::vector<Bucket>{}),
      partition_(engine.table(), comm.hosts(), comm.columns(), ends_of(buckets_)),
      touched_(engine.backend(), partition_.row_count()),
      m_(engine.backend(), comm, partition_),
      v_(engine.backend(), comm, partition_),
      totals_(engine.backend(), world_, world_.size() == comm.size() ? peers_ : nullptr, share(),
              options.virtual_shards, options.max_grad_norm),
      in_stages_(plan.links != nullptr),
      words_(word_embeddings(engine.table())),
      words_move_(words_ && words_->layer >= options.lowest_layer),
      has_tied_words_(engine.table().head().kind == HeadKind::masked),
      steps_per_epoch_(steps_per_epoch(objective.samples().size(), batch_size)) {
  if (owns()) find_norm_runs();
  make_exchange(batch_size);
  const int64_t most_sequences =
      part(batch_size, options.virtual_shards, 0).size();  // the first part is the largest
  const BatchSize limits =
      reserved_size(engine.backend(),
                    micro_batch_limits(objective.samples(), options.micro_batches, most_sequences));
  passes_ = std::make_unique<StagePasses>(
      engine, objective, *sum_, buckets_, has_tied_words_ ? limits.tokens : limits.sequences,
      PassOptions{options.micro_batches, options.virtual_shards, options.lowest_layer},
      std::move(plan));
  host_streams_ = dropout_streams(engine.config(), options.seed, 0);
  streams_ = engine.backend().allocate(host_streams_.size() * sizeof(DropoutStream));
  if (words_move_ && owns() && partition_.rows(own()).size() > 0) {
    const IndexRange rows = partition_.rows(own());
    lazy_words_ = std::make_unique<LazyRows>(
        engine.backend(),
        engine.table().view(engine.weights(), *words_).rows_from(rows.begin, rows.size()),
        matrix(m_.row(rows.begin), rows.size(), partition_.cols()),
        matrix(v_.row(rows.begin), rows.size(), partition_.cols()));
  }
  engine.on_weights_wanted([this] {
    if (comm_.size() == 1) settle();
    FINETUNE_CHECK(settled_);  // several processes must settle together before
  });
}

StepShare TrainingStep::share() const {
  return {part(options_.virtual_shards, comm_.size(), comm_.rank()),
          engine_.part().head && adds_replicated(),
          owns() ? partition_.norm_blocks(own(), adds_replicated()) : std::vector<int64_t>()};
}

void TrainingStep::find_norm_runs() {
  for (int bucket = 0; bucket < partition_.buckets(); ++bucket) {
    for (IndexRange run : partition_.norm_runs(own(), bucket, adds_replicated())) {
      norm_runs_.push_back(run);
    }
  }
}

void TrainingStep::make_exchange(int64_t batch_size) {
  Backend& backend = engine_.backend();
  const int64_t elements = engine_.table().size(), shards = options_.virtual_shards;
  float* weights = engine_.weights();
  if (!peers_) {
    const bool staged = staged_through_host(backend, comm_);
    sum_ = make_gradient_reduce(backend, comm_, partition_, elements, shards, staged,
                                elements_of_chunks(engine_.table()));
    weight_gather_ = make_weight_gather(backend, comm_, partition_, weights, words_move_, staged);
    return;
  }
  DeviceExchangeOptions exchange;
  exchange.most_rows = most_rows(partition_, objective_.samples(), batch_size);
  exchange.deterministic = in_tree_order();
  exchange.buckets = buckets_;
  exchange.wire = options_.wire;
  exchange.chunks = elements_of_chunks(engine_.table());
  exchange.at_end = in_stages_;
  sum_ = make_device_reduce(backend, *peers_, comm_, partition_, elements, shards, exchange);
  weight_gather_ =
      make_device_gather(backend, *peers_, comm_, partition_, weights, words_move_, exchange);
}

std::string_view TrainingStep::route() const {
  if (peers_) return "gradients and weights go from GPU to GPU (NCCL)";
  return staged_through_host(engine_.backend(), comm_)
             ? "gradients and weights go from device to device through memory of the host"
             : "";
}

std::string_view TrainingStep::order() const {
  if (peers_ && options_.wire == DType::bf16) {
    return ", gradients in bf16 between GPUs: other bits on another number of processes";
  }
  if (peers_ && !in_tree_order()) return ", summed in no fixed order (--no-deterministic)";
  return ": the same bits on any number of processes";
}

TrainingStep::~TrainingStep() {
  engine_.backend().forget_packed();  // the gradients' memory is freed
  try {
    if (comm_.size() == 1) settle();
    engine_.on_weights_wanted(nullptr);
  } catch (...) {  // the device fails; later users of the weights get this error
    engine_.on_weights_wanted([why = std::current_exception()] { std::rethrow_exception(why); });
  }
}

template <typename Action>
void TrainingStep::communicate(const char* phase, int64_t step, Action&& action) {
  const double start = seconds_now();
  world_.note(phase, step);
  action();
  if (peers_ || world_.size() == 1) return;  // peers count the time the device waits
  communication_seconds_ += seconds_now() - start;
}

template <typename Action>
void TrainingStep::count_data_bytes(Action&& action) {
  const int64_t before = comm_.bytes_sent();
  action();
  data_bytes_ += comm_.bytes_sent() - before;
}

double TrainingStep::communication_seconds() const {
  return peers_ ? peers_->waited() : communication_seconds_;
}

void TrainingStep::settle() {
  if (settled_) return;
  communicate("completing the weights", -1, [&] {
    if (lazy_words_) lazy_words_->settle();
    weight_gather_->all_gather_all();
  });
  settled_ = true;
}

void TrainingStep::find_touched_rows(std::span<const uint32_t> batch) {
  const SampleView& samples = objective_.samples();
  if (!words_) return;
  touched_.clear();
  if (has_tied_words_) touched_.add_all();
  for (uint32_t index : has_tied_words_ ? std::span<const uint32_t>() : batch) {
    touched_.add(
        samples.ids.subspan(size_t(samples.offsets[index]), size_t(samples.length(index))));
  }
  touched_.complete();
  if (!lazy_words_) return;
  const IndexRange rows = partition_.rows(own());
  own_rows_.clear();
  for (int32_t row : touched_.within(rows)) own_rows_.push_back(row - int32_t(rows.begin));
  lazy_words_->begin_step();
  lazy_words_->need(own_rows_);
  lazy_words_->catch_up();
}

// Sums squares during the backward pass, while the device has the gradient in its caches. Only if
// this process has the whole gradient, and it is not a term of a sum.
bool TrainingStep::sums_squares_early() const {
  return engine_.backend().has_second_stream() && kCudaNormSwitch.is_on() && world_.size() == 1 &&
         options_.virtual_shards == 1;
}

// Uses the blocks of a process that owns the whole gradient.
void TrainingStep::add_squares_of(int layer) {
  for (const Region& region : engine_.table().regions()) {
    const int64_t begin = region.elements.begin;
    const int64_t end = std::min(region.elements.end, partition_.dense_elements());
    if (region.layer != layer || begin >= end) continue;
    engine_.backend().block_square_sums(vector(sum_->sum() + begin, end - begin), kNormBlock, {},
                                        totals_.squares() + begin / kNormBlock);
  }
}

// Sums the squares of this process's gradient, in blocks. `early`: trained layers are done.
void TrainingStep::add_up_squares(bool early) {
  if (!owns()) return;
  Backend& backend = engine_.backend();
  const IndexRange rows = partition_.rows(own());
  const int64_t cols = partition_.cols();
  double* sums = totals_.squares();
  for (IndexRange run : norm_runs_) {
    if (!early) {
      backend.block_square_sums(vector(sum_->sum() + run.begin, run.size()), kNormBlock, {}, sums);
    }
    sums += (run.size() + kNormBlock - 1) / kNormBlock;
  }
  for (int layer = 0; early && layer < options_.lowest_layer; ++layer) add_squares_of(layer);
  if (!adds_replicated()) return;
  backend.block_square_sums(
      vector(sum_->sum() + partition_.dense_elements() + rows.begin * cols, rows.size() * cols),
      partition_.row_block() * cols, {-rows.begin * cols, cols, touched_.list(rows)}, sums);
}

void TrainingStep::update(int64_t step, double learning_rate, const AdamW& clipping) {
  settled_ = false;
  if (!owns()) return;
  Backend& backend = engine_.backend();
  const ParameterTable& table = engine_.table();
  int64_t top = engine_.config().num_hidden_layers + 1;
  AdamW adamw = clipping;
  adamw.beta1 = float(options_.adam_beta1);
  adamw.beta2 = float(options_.adam_beta2);
  adamw.epsilon = float(options_.adam_epsilon);
  adamw.step = step + 1;
  // Weights shared by several layers have the rate of the lowest of these layers.
  auto options_for = [&](const Parameter& parameter) {
    adamw.learning_rate =
        float(learning_rate * std::pow(options_.layer_lr_decay, double(top - parameter.layer)));
    adamw.weight_decay = parameter.decay ? float(options_.weight_decay) : 0.0f;
    return adamw;
  };
  for (int bucket = 0; bucket < partition_.buckets(); ++bucket) {
    const IndexRange mine = partition_.dense(own(), bucket);
    parts_.clear();
    for (const Parameter& parameter : table.parameters()) {
      if (parameter.layer < options_.lowest_layer || &parameter == words_) continue;
      const int64_t begin = std::max(parameter.offset, mine.begin);
      const int64_t count = std::min(parameter.offset + parameter.size(), mine.end) - begin;
      if (count <= 0) continue;
      // Weights of linear layers, whose gradient the next step overwrites. With several processes
      // others update some of them, unseen by the backend.
      const bool linear = parameter.layer > 0 && parameter.shape.size() == 2;
      parts_.push_back({options_for(parameter), begin - mine.begin, count,
                        linear && comm_.size() == 1 ? parameter.shape[1] : 0});
    }
    if (parts_.empty()) continue;
    auto own_part = [&](float* arena) { return vector(arena, mine.size()); };
    backend.adamw_parts(parts_, own_part(engine_.weights_as_they_are() + mine.begin),
                        own_part(sum_->sum() + mine.begin), own_part(m_.dense(mine.begin)),
                        own_part(v_.dense(mine.begin)));
  }
  if (!lazy_words_) return;
  const IndexRange rows = partition_.rows(own());
  lazy_words_->update(options_for(*words_),
                      table.view(sum_->sum(), *words_).rows_from(rows.begin, rows.size()));
}

int64_t TrainingStep::most_under_way() const {
  return totals_.stay() && !engine_.backend().uses_host_memory() ? 1 : 0;
}

StepResult TrainingStep::run(int64_t step, std::span<const uint32_t> batch, double learning_rate) {
  FINETUNE_CHECK(begun_.empty());
  begin(step, batch, learning_rate);
  return finish();
}

StepResult TrainingStep::finish() {
  FINETUNE_CHECK(!begun_.empty());
  StepResult result = begun_.front();
  begun_.pop_front();
  if (most_under_way() > 0) {
    world_.note("waiting for the device", -1);
    finish_outcome(engine_.backend(), result);
  }
  return result;
}

void TrainingStep::begin(int64_t step, std::span<const uint32_t> batch, double learning_rate,
                         const std::function<int()>& stop_request) {
  const EncoderConfig& config = engine_.config();
  auto probability = [&](double own) { return options_.dropout >= 0 ? options_.dropout : own; };
  DropoutPlan dropout;
  dropout.hidden = probability(config.hidden_dropout_prob);
  dropout.attention = probability(config.attention_probs_dropout_prob);
  dropout.gate = probability(config.gate_dropout);
  dropout.head = probability(config.head_dropout(engine_.table().head().kind));
  if (config.head_input_dropout >= 0) {
    dropout.head_input = probability(config.head_input_dropout);
  }

  Backend& backend = engine_.backend();
  for (DropoutStream& stream : host_streams_) stream.step = uint32_t(step);
  backend.upload(streams_.get(), host_streams_.data(),
                 host_streams_.size() * sizeof(DropoutStream));
  dropout.streams = static_cast<const DropoutStream*>(streams_.get());
  StepResult result;
  for (uint32_t index : batch) result.tokens += objective_.samples().length(index);
  objective_.begin_epoch(step / steps_per_epoch_);
  const double denominator = objective_.loss_denominator(batch);
  find_touched_rows(batch);
  communicate("waiting for the weights", step + 1,
              [&] { count_data_bytes([&] { weight_gather_->all_gather(touched_); }); });
  const bool early = sums_squares_early() && !batch.empty();
  world_.note("forward and backward pass", step + 1);
  count_data_bytes([&] {  // buckets are sent during the backward pass
    StepBatch passes{batch, &dropout, float(1.0 / denominator), totals_.losses()};
    if (early) passes.complete = [this](int layer) { add_squares_of(layer); };
    passes_->run(passes, touched_);
  });
  // Synchronize, so that the time before this point does not count as communication.
  if (world_.size() > 1 && !peers_) backend.synchronize();
  AdamW clipping;
  communicate("summing gradients", step + 1, [&] {
    count_data_bytes([&] { sum_->reduce_scatter(touched_); });
    add_up_squares(early);
    const double requested = stop_request();
    backend.upload(totals_.stop_request(), &requested, sizeof requested);
    if (totals_.stay()) {
      clipping.outcome = totals_.work_out(denominator);
      if (most_under_way() == 0) finish_outcome(backend, result);
    } else {
      const StepOutcome outcome = totals_.work_out_on_host(denominator);
      clipping.gradient_scale = outcome.gradient_scale;
      put(outcome, result);
    }
  });
  begun_.push_back(result);
  if (!result.finite) return;  // the run ends: the sum's rows need no zeros
  world_.note("updating weights", step + 1);
  update(step, learning_rate, clipping);
  if (comm_.size() > 1)
    communicate("sending weights", step + 1,
                [&] { count_data_bytes([&] { weight_gather_->publish(); }); });
}

}  // namespace finetune

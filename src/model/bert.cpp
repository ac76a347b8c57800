// BERT's forward and backward pass over encoder layers, embeddings and head.
#include "model/bert.h"

#include <algorithm>

#include "model/encoder_layer.h"

namespace finetune {

// A field of Bert::State, which a file of several must not see in an anonymous namespace.
struct EmbeddingSlots {
  Slot word, position, type, gamma, beta;
};

namespace {

// The order of dropout_streams: embeddings, head, three of each layer.
constexpr int64_t kEmbeddingStream = 0, kHeadStream = 1, kLayerStreams = 2;

// Dropout of every site of one step.
class DropoutSites {
 public:
  explicit DropoutSites(const DropoutPlan* plan) : plan_(plan) {}
  Dropout embeddings() const {
    return site(hidden(), uint32_t(RandomUse::embedding_dropout), kEmbeddingStream);
  }
  Dropout head() const {
    return site(plan_ ? plan_->head : 0, uint32_t(RandomUse::head_dropout), kHeadStream);
  }
  LayerDropout layer(int l) const {
    const int64_t first = kLayerStreams + 3 * l;
    return {site(plan_ ? plan_->attention : 0, layer_use(RandomUse::attention_dropout, l), first),
            site(hidden(), layer_use(RandomUse::attention_output_dropout, l), first + 1),
            site(hidden(), layer_use(RandomUse::output_dropout, l), first + 2)};
  }

 private:
  double hidden() const { return plan_ ? plan_->hidden : 0; }
  Dropout site(double probability, uint32_t use, int64_t stream) const {
    if (probability <= 0) return {};
    if (!plan_->streams) {
      return Dropout::make(probability, derive_key(plan_->seed, use), plan_->step);
    }
    Dropout dropout = Dropout::make(probability, {}, 0);
    dropout.stream = plan_->streams + stream;
    return dropout;
  }

  const DropoutPlan* plan_;
};

}  // namespace

std::vector<DropoutStream> dropout_streams(const BertConfig& config, uint64_t seed, uint32_t step) {
  std::vector<DropoutStream> streams;
  auto add = [&](uint32_t use) { streams.push_back({derive_key(seed, use), step}); };
  add(uint32_t(RandomUse::embedding_dropout));
  add(uint32_t(RandomUse::head_dropout));
  for (int l = 0; l < int(config.num_hidden_layers); ++l) {
    add(layer_use(RandomUse::attention_dropout, l));
    add(layer_use(RandomUse::attention_output_dropout, l));
    add(layer_use(RandomUse::output_dropout, l));
  }
  return streams;
}

bool has_whole_layers(const Backend& backend, const BertConfig& c) {
  return backend.has_layer({c.hidden_size, c.head_size(), c.intermediate_size, c.hidden_act});
}

struct Bert::State {
  Backend& backend;
  BertConfig config;
  Head head;
  EmbeddingSlots embeddings;
  std::vector<LayerSlots> layers;
  Slot pooler_weight, pooler_bias, head_weight, head_bias;

  bool whole_layers = false;  // in inference
  bool can_train = false, recompute = false;
  std::shared_ptr<void> memory;
  int64_t reserved = 0;  // bytes
  // Of the last forward, for its own micro-batch: a small one touches little of the memory.
  ActivationPlan plan;
  int64_t kept_tokens = 0, kept_sequences = 0;  // of the last kept forward; 0: none

  State(Backend& backend, const BertConfig& config, const ParameterTable& table);

  bool sequence_head() const { return head.kind == HeadKind::sequence; }
  bool first_only(int64_t layer) const {
    return sequence_head() && layer + 1 == config.num_hidden_layers;
  }
  float* block() const { return static_cast<float*>(memory.get()); }
  Tensor at(int64_t place, int64_t rows, int64_t cols) const {
    return place == kAbsent ? Tensor{} : matrix(block() + place, rows, cols);
  }
  LayerPass pass(const DeviceBatch& batch, int64_t layer, const DropoutSites& sites) const {
    return {backend,
            config,
            batch,
            layers[size_t(layer)],
            plan.layers[size_t(layer)],
            sites.layer(int(layer)),
            first_only(layer),
            block()};
  }

  // Rows of the position embedding that the batch's positions, counted from 0, can name.
  Tensor positions(const DeviceBatch& batch, float* arena) const;
  void embed(const DeviceBatch& batch, float* weights, const DropoutSites& sites, bool keep);
  int64_t feature_rows(const DeviceBatch& batch) const {
    return sequence_head() ? batch.sequences() : batch.tokens();
  }
  Tensor logits(const DeviceBatch& batch, float* weights, const DropoutSites& sites);
  void head_backward(const DeviceBatch& batch, float* weights, float* arena, Tensor dlogits,
                     const DropoutSites& sites, Tensor dencoder, bool accumulate);
  void embed_backward(const DeviceBatch& batch, float* weights, float* arena,
                      const DropoutSites& sites, bool accumulate);
};

Bert::State::State(Backend& b, const BertConfig& c, const ParameterTable& table)
    : backend(b), config(c), head(table.head()) {
  whole_layers = has_whole_layers(b, c);
  auto weight = [&](Role role) { return slot_of(table, role, ParameterPart::weight); };
  auto bias = [&](Role role) { return slot_of(table, role, ParameterPart::bias); };
  embeddings.word = weight(Role::word_embeddings);
  embeddings.position = weight(Role::position_embeddings);
  if (c.architecture->has(Role::type_embeddings)) embeddings.type = weight(Role::type_embeddings);
  embeddings.gamma = weight(Role::embedding_norm);
  embeddings.beta = bias(Role::embedding_norm);
  for (int64_t l = 0; l < c.num_hidden_layers; ++l) layers.emplace_back(table, l);
  const Role last = traits_of(head.kind).role;
  head_weight = weight(last);
  head_bias = bias(last);
  if (sequence_head()) {
    pooler_weight = weight(Role::pooler);
    pooler_bias = bias(Role::pooler);
  }
}

Tensor Bert::State::positions(const DeviceBatch& batch, float* arena) const {
  const Tensor table = embeddings.position.in(arena);
  const int64_t first = config.architecture->first_position;
  return table.rows_from(first, std::min(batch.segments().max_length, table.rows - first));
}

void Bert::State::embed(const DeviceBatch& batch, float* weights, const DropoutSites& sites,
                        bool keep) {
  const int64_t t = batch.tokens(), h = config.hidden_size;
  Tensor sum = at(plan.embedding_sum, t, h), output = at(plan.layers[0].input, t, h);
  backend.embed(batch.ids(), batch.positions(), batch.types(), embeddings.word.in(weights),
                positions(batch, weights), embeddings.type.in(weights), sum);
  backend.add_layer_norm(sum, {}, {}, {}, embeddings.gamma.in(weights), embeddings.beta.in(weights),
                         float(config.layer_norm_eps), keep ? sum : Tensor{},
                         at(plan.embedding_stats, t, 2), output);
  if (Dropout dropout = sites.embeddings(); dropout.on()) {
    backend.dropout(output, dropout, batch.token_names(), output);
  }
}

Tensor Bert::State::logits(const DeviceBatch& batch, float* weights, const DropoutSites& sites) {
  const int64_t h = config.hidden_size, rows = feature_rows(batch);
  Tensor features = at(plan.layers.back().output, rows, h);
  if (sequence_head()) {
    Tensor before_tanh = at(plan.pooler_input, rows, h), pooled = at(plan.pooled, rows, h);
    backend.linear(features, pooler_weight.in(weights), pooler_bias.in(weights), before_tanh);
    backend.activation(Activation::tanh, before_tanh, pooled);
    if (Dropout dropout = sites.head(); dropout.on()) {
      backend.dropout(pooled, dropout, batch.first_names(), pooled);
    }
    features = pooled;
  }
  Tensor out = at(plan.logits, rows, head.outputs);
  backend.linear(features, head_weight.in(weights), head_bias.in(weights), out);
  return out;
}

// Gradients of the head; `dencoder` (B or T, H) is that of the encoder's output, absent if the
// whole encoder is frozen.
void Bert::State::head_backward(const DeviceBatch& batch, float* weights, float* arena,
                                Tensor dlogits, const DropoutSites& sites, Tensor dencoder,
                                bool accumulate) {
  const int64_t rows = dlogits.rows, h = config.hidden_size;
  Tensor output = at(plan.layers.back().output, rows, h);
  if (!sequence_head()) {
    if (dencoder) {
      backend.linear_backward_input(dlogits, head_weight.in(weights), dencoder, false);
    }
    backend.linear_backward_weight(dlogits, output, head_weight.in(arena), head_bias.in(arena),
                                   accumulate);
    return;
  }
  Tensor before_tanh = at(plan.pooler_input, rows, h), pooled = at(plan.pooled, rows, h);
  Tensor dpooled = at(plan.branch_gradient, rows, h);
  backend.linear_backward_input(dlogits, head_weight.in(weights), dpooled, false);
  backend.linear_backward_weight(dlogits, pooled, head_weight.in(arena), head_bias.in(arena),
                                 accumulate);
  if (Dropout dropout = sites.head(); dropout.on()) {
    backend.dropout(dpooled, dropout, batch.first_names(), dpooled);
  }
  backend.activation_backward(Activation::tanh, before_tanh, dpooled, dpooled, {});
  if (dencoder) {
    backend.linear_backward_input(dpooled, pooler_weight.in(weights), dencoder, false);
  }
  backend.linear_backward_weight(dpooled, output, pooler_weight.in(arena), pooler_bias.in(arena),
                                 accumulate);
}

void Bert::State::embed_backward(const DeviceBatch& batch, float* weights, float* arena,
                                 const DropoutSites& sites, bool accumulate) {
  const int64_t t = batch.tokens(), h = config.hidden_size;
  if (!accumulate) {  // the word embedding has zeros where no token was
    backend.fill_zero(embeddings.position.in(arena));
    if (Tensor types = embeddings.type.in(arena)) backend.fill_zero(types);
  }
  Tensor gradient = at(plan.gradient, t, h);
  if (Dropout dropout = sites.embeddings(); dropout.on()) {
    backend.dropout(gradient, dropout, batch.token_names(), gradient);
  }
  backend.add_layer_norm_backward(gradient, at(plan.embedding_sum, t, h),
                                  at(plan.embedding_stats, t, 2), embeddings.gamma.in(weights), {},
                                  {}, gradient, {}, embeddings.gamma.in(arena),
                                  embeddings.beta.in(arena), accumulate);
  backend.embed_backward(gradient, batch.ids(), batch.positions(), batch.types(), batch.order(),
                         embeddings.word.in(arena), positions(batch, arena),
                         embeddings.type.in(arena));
}

Bert::Bert(Backend& backend, const BertConfig& config, const ParameterTable& table)
    : state_(std::make_unique<State>(backend, config, table)) {}

Bert::~Bert() = default;

int64_t Bert::activation_bytes(int64_t tokens, int64_t sequences, bool training,
                               bool recompute) const {
  const State& s = *state_;
  int64_t floats = ActivationPlan::inference(s.config, s.head, s.backend.activation_type(), tokens,
                                             sequences, s.whole_layers)
                       .floats;
  if (training) {
    floats =
        std::max(floats, ActivationPlan::training(s.config, s.head, s.backend.activation_type(),
                                                  tokens, sequences, recompute)
                             .floats);
  }
  return floats * int64_t(sizeof(float));
}

void Bert::reserve(BatchSize training, BatchSize inference, bool recompute) {
  State& s = *state_;
  s.can_train = training.tokens > 0;
  s.recompute = recompute;
  s.kept_tokens = s.kept_sequences = 0;
  s.memory.reset();
  s.reserved = activation_bytes(inference.tokens, inference.sequences, false);
  if (s.can_train) {
    s.reserved = std::max(s.reserved,
                          activation_bytes(training.tokens, training.sequences, true, recompute));
  }
  s.memory = s.backend.allocate(size_t(s.reserved));
}

Tensor Bert::forward(const DeviceBatch& batch, float* weights, const DropoutPlan* dropout,
                     bool keep_for_backward) {
  State& s = *state_;
  FINETUNE_CHECK(!keep_for_backward || s.can_train);
  const int64_t t = batch.tokens(), b = batch.sequences();
  // Dropout is for parts: whole layers have none.
  const bool whole = s.whole_layers && !keep_for_backward && dropout == nullptr;
  const DType type = s.backend.activation_type();
  s.plan = keep_for_backward ? ActivationPlan::training(s.config, s.head, type, t, b, s.recompute)
                             : ActivationPlan::inference(s.config, s.head, type, t, b, whole);
  FINETUNE_CHECK(s.plan.floats * int64_t(sizeof(float)) <= s.reserved);
  s.kept_tokens = keep_for_backward ? t : 0;
  s.kept_sequences = keep_for_backward ? b : 0;
  const DropoutSites sites(dropout);
  s.embed(batch, weights, sites, keep_for_backward);
  for (int64_t l = 0; l < s.config.num_hidden_layers; ++l) {
    const LayerPass pass = s.pass(batch, l, sites);
    whole ? whole_layer_forward(pass, weights) : layer_forward(pass, weights);
  }
  return s.logits(batch, weights, sites);
}

Tensor Bert::inferred_logits(const DeviceBatch& batch) const {
  const State& s = *state_;
  const auto plan = ActivationPlan::inference(s.config, s.head, s.backend.activation_type(),
                                              batch.tokens(), batch.sequences(), s.whole_layers);
  return s.at(plan.logits, s.feature_rows(batch), s.head.outputs);
}

void Bert::backward(const DeviceBatch& batch, float* weights, float* gradients, Tensor dlogits,
                    const DropoutPlan* dropout, int lowest_layer, bool accumulate,
                    const std::function<void(int)>& ready) {
  State& s = *state_;
  FINETUNE_CHECK(s.kept_tokens == batch.tokens() && s.kept_sequences == batch.sequences());
  const int64_t h = s.config.hidden_size, count = s.config.num_hidden_layers;
  const ActivationPlan& plan = s.plan;
  const DropoutSites sites(dropout);
  if (lowest_layer > count + 1) return;
  auto is_ready = [&](int64_t layer) {
    if (ready && layer >= lowest_layer) ready(int(layer));
  };
  const int64_t top = s.sequence_head() ? plan.first_gradient : plan.gradient;
  s.head_backward(batch, weights, gradients, dlogits, sites,
                  lowest_layer <= count ? s.at(top, dlogits.rows, h) : Tensor{}, accumulate);
  is_ready(count + 1);
  for (int64_t l = count; l-- > 0 && l + 1 >= lowest_layer;) {
    LayerGradients places{s.first_only(l) ? plan.first_gradient : plan.gradient,
                          plan.branch_gradient,
                          plan.context_gradient,
                          plan.wide_gradient,
                          plan.query_gradient,
                          plan.gradient};
    LayerPass pass = s.pass(batch, l, sites);
    pass.accumulate = accumulate;
    // The last layer's results are those of the forward pass still.
    if (s.recompute && l + 1 < count) layer_forward(pass, weights);
    layer_backward(pass, places, weights, gradients, l >= lowest_layer);
    is_ready(l + 1);
  }
  if (lowest_layer > 0) return;
  s.embed_backward(batch, weights, gradients, sites, accumulate);
  is_ready(0);
}

Tensor Bert::hidden_state(int64_t i) const {
  const State& s = *state_;
  FINETUNE_CHECK(s.kept_tokens > 0 && i >= 0 && i <= s.config.num_hidden_layers);
  if (i == 0) return s.at(s.plan.layers[0].input, s.kept_tokens, s.config.hidden_size);
  const int64_t rows = s.first_only(i - 1) ? s.kept_sequences : s.kept_tokens;
  return s.at(s.plan.layers[size_t(i - 1)].output, rows, s.config.hidden_size);
}

}  // namespace finetune

// Builds the parameter table of a part of the model, and draws initial values.
#include "model/parameters.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"
#include "core/numeric/philox.h"
#include "core/threads/parallel.h"
#include "ops/backend.h"

namespace finetune {
namespace {

constexpr int64_t kAlignment = 16;  // elements: a cache line of floats

// Hugging Face's rule (Trainer.get_decay_parameter_names): no decay on biases and LayerNorm. The
// table of position biases has "bias" in its name.
bool decays(Role role, ParameterPart part) {
  return part == ParameterPart::weight && !is_norm(role) && role != Role::position_bias;
}

// True for a tensor that follows its predecessor without a gap.
bool joined_to_previous(Role role) {
  return role == Role::key || role == Role::value || role == Role::gate;
}

// The deviation of truncated normal values, as transformers initializes ModernBERT: smaller if a
// block's results are added to others; for a head it depends on the input's width.
double deviation_of(Role role, const EncoderConfig& c) {
  switch (role) {
    case Role::attention_output:
    case Role::output:
    case Role::pooler:
    case Role::masked_transform:
      return c.initializer_range / std::sqrt(2.0 * double(c.num_hidden_layers));
    case Role::sequence_head:
    case Role::token_head:
      return 1 / std::sqrt(double(c.hidden_size));
    default:
      return c.initializer_range;
  }
}

// A shard's part of a dense layer: all of it, or some of the weight's rows with their biases,
// or some of the weight's columns; then the first shard has the bias.
enum class Cut { none, rows, columns };

// Lays out the whole model region by region, and lists the parameters that the part has.
class Builder {
 public:
  Builder(const EncoderConfig& config, int64_t tensor_shards, DType products)
      : config_(config),
        architecture_(*config.architecture),
        shards_(tensor_shards),
        products_(products) {}

  // Begins a region; `held`: the part has it. A region without parameters is left out.
  void region(int layer, int shard, bool held) {
    end_region();
    layer_ = layer;
    shard_ = shard;
    held_ = held;
  }
  void weight(Role role, int64_t out, int64_t in, Cut cut = Cut::none) {
    TensorSlice slice{0, out, 0, in};
    if (cut == Cut::rows) slice = {own(out).begin, own(out).size(), 0, in};
    if (cut == Cut::columns) slice = {0, out, own(in).begin, own(in).size()};
    add(role, ParameterPart::weight, {out, in}, slice, Parameter::Init::normal);
  }
  // Adds weights, then biases, of roles multiplied as one matrix: (out, in) each, cut by rows.
  void joined(std::initializer_list<Role> roles, int64_t out, int64_t in, bool with_bias) {
    const Role first = *roles.begin();
    if (architecture_.module_of(first) != architecture_.module_of(*(roles.end() - 1))) {
      for (Role role : roles) weight(role, out, in, Cut::rows);
      for (Role role : roles)
        if (with_bias) bias(role, out, Cut::rows);
      return;
    }
    const int64_t all = int64_t(roles.size()) * out;
    if (shards_ == 1) {
      weight(first, all, in);
      if (with_bias) bias(first, all);
      return;
    }
    int64_t row = own(out).begin;
    for (Role role : roles) {
      const TensorSlice slice{row, own(out).size(), 0, in};
      add(role, ParameterPart::weight, {all, in}, slice, Parameter::Init::normal);
      row += out;
    }
    row = own(out).begin;
    for (Role role : roles) {
      const TensorSlice slice{0, 1, row, own(out).size()};
      if (with_bias) add(role, ParameterPart::bias, {all}, slice, Parameter::Init::zeros);
      row += out;
    }
  }
  void vector(Role role, ParameterPart part, int64_t n, Parameter::Init init, Cut cut = Cut::none) {
    if (cut == Cut::columns && shard_ > 0) return;
    const IndexRange range = cut == Cut::rows ? own(n) : IndexRange{0, n};
    add(role, part, {n}, {0, 1, range.begin, range.size()}, init);
  }
  void bias(Role role, int64_t n, Cut cut = Cut::none) {
    vector(role, ParameterPart::bias, n, Parameter::Init::zeros, cut);
  }
  void linear(Role role, int64_t out, int64_t in, Cut cut = Cut::none, bool with_bias = true) {
    weight(role, out, in, cut);
    if (with_bias) bias(role, out, cut);
  }
  void convolution(int64_t n, int64_t taps) {
    add(Role::convolution, ParameterPart::weight, {n, n, taps}, {0, n, 0, n * taps},
        Parameter::Init::normal);
    bias(Role::convolution, n);
  }
  void layer_norm(Role role, int64_t n) {
    vector(role, ParameterPart::weight, n, Parameter::Init::ones);
    if (config_.layer.norm_bias) bias(role, n);
  }
  // Ends the region at a multiple of `alignment`: norm blocks, or cache lines for the last one.
  void end_region(int64_t alignment = kNormBlock) {
    if (region_size_ == 0) return;
    const int64_t padded = rounded_up(region_size_, alignment);
    if (held_) {
      regions.push_back({{size, size + padded}, whole_, layer_, shard_});
      size += padded;
    }
    whole_ += padded;
    region_size_ = 0;
  }

  std::vector<Parameter> parameters;
  std::vector<Region> regions;
  int64_t size = 0;

 private:
  static int64_t rounded_up(int64_t count, int64_t multiple) {
    return (count + multiple - 1) / multiple * multiple;
  }
  IndexRange own(int64_t count) const { return part(count, shards_, shard_); }

  void add(Role role, ParameterPart part, std::vector<int64_t> whole_shape, TensorSlice slice,
           Parameter::Init init) {
    if (!joined_to_previous(role)) region_size_ = rounded_up(region_size_, kAlignment);
    const int64_t offset = size + region_size_, count = slice.rows * slice.cols;
    const bool is_rounded = is_product(role) && part == ParameterPart::weight && count % 2 == 0;
    const DType dtype = is_rounded ? products_ : DType::f32;
    region_size_ += floats_of(count, dtype);
    if (!held_) return;
    Parameter& p = parameters.emplace_back();
    p.name = config_.architecture->module_of(
        role, is_of_layer(role) ? config_.layer_name(layer_ - 1) : LayerName{});
    p.name += part == ParameterPart::weight ? ".weight" : ".bias";
    p.shape =
        whole_shape.size() == 1 ? std::vector{slice.cols} : std::vector{slice.rows, slice.cols};
    if (whole_shape.size() == 3) p.shape = whole_shape;  // never cut
    p.whole_shape = std::move(whole_shape);
    p.slice = slice;
    p.offset = offset;
    p.dtype = dtype;
    p.decay = decays(role, part);
    p.layer = layer_;
    p.shard = shard_;
    p.init = init;
    p.cutoff = config_.initializer_cutoff;
    if (p.cutoff > 0) p.deviation = deviation_of(role, config_);
    p.role = role;
    p.part = part;
    p.head = is_of_head(role);
  }

  const EncoderConfig& config_;
  const Architecture& architecture_;
  int64_t shards_;
  DType products_;
  int layer_ = 0, shard_ = kReplicated;
  bool held_ = false;
  int64_t region_size_ = 0, whole_ = 0;  // so far
};

// Whether the part has encoder layer `layer` (from 0) or a later one that uses its weights.
bool uses_weights(const ModelPart& part, const EncoderConfig& config, int64_t layer) {
  while (!part.holds_layer(layer) && config.shares_above(layer)) layer += config.layer.inner;
  return part.holds_layer(layer);
}

void add_encoder_layer(Builder& builder, const EncoderConfig& config, int layer,
                       const ModelPart& part) {
  const int64_t h = config.hidden_size, inner = config.intermediate_size;
  const bool held = uses_weights(part, config, layer - 1), before = config.layer.norm_before;
  builder.region(layer, kReplicated, held);
  if (before && layer == int(config.num_hidden_layers)) builder.layer_norm(Role::final_norm, h);
  builder.layer_norm(Role::output_norm, h);
  if (!before || layer > 1) builder.layer_norm(Role::attention_norm, h);
  if (config.convolution.on() && layer == 1) {
    builder.layer_norm(Role::convolution_norm, h);
    builder.convolution(h, config.convolution.taps);
  }
  for (int64_t shard = 0; shard < part.tensor_shards; ++shard) {
    builder.region(layer, int(shard), held && part.shards.contains(shard));
    const bool attention_bias = config.layer.attention_bias, inner_bias = config.layer.inner_bias;
    builder.joined({Role::query, Role::key, Role::value}, h, h, attention_bias);
    if (config.relative.own_weights && config.relative.of_queries) {
      builder.linear(Role::position_key, h, h, Cut::rows);
    }
    if (config.relative.own_weights && config.relative.of_keys) {
      builder.linear(Role::position_query, h, h, Cut::rows);
    }
    if (config.layer.gated) {
      builder.joined({Role::inner, Role::gate}, inner, h, inner_bias);
    } else {
      builder.linear(Role::inner, inner, h, Cut::rows, inner_bias);
    }
    builder.linear(Role::attention_output, h, h, Cut::columns, attention_bias);
    builder.linear(Role::output, h, inner, Cut::columns, inner_bias);
  }
}

void add_position_bias(Builder& builder, const EncoderConfig& config, const ModelPart& part) {
  for (int64_t shard = 0; config.layer.position_bias && shard < part.tensor_shards; ++shard) {
    builder.region(0, int(shard), part.embeddings && part.shards.contains(shard));
    builder.weight(Role::position_bias, kPositionBuckets, config.num_attention_heads, Cut::columns);
  }
}

void add_head(Builder& builder, Head head, const EncoderConfig& config) {
  const int64_t h = config.hidden_size, e = config.embedding_size(), words = config.vocab_size;
  if (head.kind == HeadKind::masked) {
    FINETUNE_CHECK(head.outputs == words);
    if (config.head.decoder_bias) builder.bias(Role::masked_decoder, words);
    builder.layer_norm(Role::masked_norm, e);
    return builder.linear(Role::masked_transform, e, h, Cut::none, config.head.dense_bias);
  }
  builder.linear(traits_of(head.kind).role, head.outputs, h);
  if (!config.has_dense(head.kind)) return;
  if (config.head.norm) builder.layer_norm(Role::head_norm, h);
  builder.linear(Role::pooler, h, h, Cut::none, config.head.dense_bias);
}

// FNV-1a, 64 bits.
uint64_t hash_of(std::string_view name) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (char c : name) hash = (hash ^ uint8_t(c)) * 0x100000001B3u;
  return hash;
}

// Element `index` of four standard normal values (Box and Muller, 1958) of one Philox block.
double normal_value(const PhiloxBlock& bits, size_t index) {
  size_t pair = index / 2 * 2;
  double radius = std::sqrt(-2.0 * std::log(unit_interval(bits[pair])));
  double angle = 2.0 * std::numbers::pi * unit_interval(bits[pair + 1]);
  return radius * (index % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

}  // namespace

ParameterTable::ParameterTable(const EncoderConfig& config, Head head)
    : ParameterTable(config, head, ModelPart::whole(config)) {}

ParameterTable::ParameterTable(const EncoderConfig& config, Head head, const ModelPart& part,
                               DType products)
    : architecture_(config.architecture), head_(head), part_(part) {
  FINETUNE_CHECK(config.num_attention_heads % part.tensor_shards == 0 &&
                 config.intermediate_size % part.tensor_shards == 0);
  Builder builder(config, part.tensor_shards, products);
  const int64_t h = config.hidden_size, e = config.embedding_size();
  const int layers = int(config.num_hidden_layers);
  builder.region(layers + 1, kReplicated, part.head);
  add_head(builder, head, config);
  for (int layer = layers; layer > 0; --layer) {
    if (config.weights_layer(layer - 1) == layer - 1) {
      add_encoder_layer(builder, config, layer, part);
    }
  }
  add_position_bias(builder, config, part);
  builder.region(0, kReplicated, part.embeddings);
  if (config.has_projection()) builder.linear(Role::embedding_projection, h, e);
  if (config.relative.on()) {
    builder.weight(Role::relative_embeddings, config.relative.rows(), h);
  }
  if (config.relative.norm) builder.layer_norm(Role::relative_norm, h);
  builder.layer_norm(Role::embedding_norm, e);
  if (config.type_vocab_size > 0) {
    builder.weight(Role::type_embeddings, config.type_vocab_size, e);
  }
  if (config.position_rows() > 0) {
    builder.weight(Role::position_embeddings, config.position_rows(), e);
    // The row of padding tokens, before the first position.
    if (part.embeddings) builder.parameters.back().zero_row = config.embeddings.first_position - 1;
  }
  builder.region(0, kReplicated, part.embeddings);
  builder.weight(Role::word_embeddings, config.vocab_size, e);
  builder.end_region(kAlignment);
  parameters_ = std::move(builder.parameters);
  regions_ = std::move(builder.regions);
  size_ = builder.size;
  if (part.embeddings) parameters_.back().zero_row = config.pad_token_id;
}

int64_t ParameterTable::count() const {
  int64_t total = 0;
  for (const Parameter& p : parameters_) total += p.size();
  return total;
}

const Parameter* ParameterTable::find(std::string_view name) const {
  auto found = std::find_if(parameters_.begin(), parameters_.end(),
                            [&](const Parameter& p) { return p.name == name; });
  return found == parameters_.end() ? nullptr : &*found;
}

const Parameter* ParameterTable::find(Role role, ParameterPart part, int64_t layer,
                                      int shard) const {
  auto found = std::find_if(parameters_.begin(), parameters_.end(), [&](const Parameter& p) {
    return p.role == role && p.part == part && (!is_of_layer(role) || p.layer == layer + 1) &&
           (p.shard == kReplicated || p.shard == shard);
  });
  return found == parameters_.end() ? nullptr : &*found;
}

Tensor ParameterTable::view(float* arena, const Parameter& p) const {
  if (p.shape.size() == 1) return vector(arena + p.offset, p.shape[0]);
  return {arena + p.offset, p.dtype, p.slice.rows, p.slice.cols, p.slice.cols};
}

Tensor ParameterTable::view(float* arena, std::string_view name) const {
  const Parameter* parameter = find(name);
  FINETUNE_CHECK(parameter != nullptr);
  return view(arena, *parameter);
}

void initialize(const ParameterTable& table, const Parameter& parameter, double initializer_range,
                uint64_t seed, float* arena) {
  const TensorSlice& slice = parameter.slice;
  float* values = table.view(arena, parameter).f32();
  const int64_t count = parameter.size(),
                whole_cols = parameter.whole() ? slice.cols : parameter.whole_shape.back();
  if (parameter.init != Parameter::Init::normal) {
    std::fill(values, values + count, parameter.init == Parameter::Init::ones ? 1.0f : 0.0f);
    return;
  }
  const PhiloxKey key = derive_key(seed, uint32_t(RandomUse::initial_weights));
  const uint64_t name = hash_of(parameter.name);
  const double deviation = parameter.deviation > 0 ? parameter.deviation : initializer_range;
  constexpr int64_t kGrain = 1 << 14;
  parallel_ranges(count, kGrain, [&](int64_t begin, int64_t end) {
    PhiloxBlock bits{};
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / slice.cols, col = i % slice.cols;
      const int64_t element = (slice.row + row) * whole_cols + slice.col + col;
      if (element % 4 == 0 || col == 0 || i == begin) {
        uint64_t block = uint64_t(element) / 4;
        bits = philox(
            key, {uint32_t(block), uint32_t(block >> 32), uint32_t(name), uint32_t(name >> 32)});
      }
      double value = normal_value(bits, size_t(element % 4));
      for (uint32_t again = 1; parameter.cutoff > 0 && std::abs(value) > parameter.cutoff;
           ++again) {
        const PhiloxKey other = derive_key(seed + again, uint32_t(RandomUse::initial_weights));
        value = normal_value(philox(other, {uint32_t(element), uint32_t(uint64_t(element) >> 32),
                                            ~uint32_t(name), uint32_t(name >> 32)}),
                             0);
      }
      values[i] = float(deviation * value);
    }
  });
  if (parameter.zero_row >= 0) {  // of a tensor that is never cut
    float* row = values + parameter.zero_row * slice.cols;
    std::fill(row, row + slice.cols, 0.0f);
  }
}

void initialize(const ParameterTable& table, double initializer_range, uint64_t seed,
                float* arena) {
  for (const Parameter& parameter : table.parameters()) {
    initialize(table, parameter, initializer_range, seed, arena);
  }
}

}  // namespace finetune

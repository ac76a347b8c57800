// Builds the parameter table from the configuration, and draws initial values.
#include "model/parameters.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"
#include "core/numeric/philox.h"
#include "core/threads/parallel.h"

namespace finetune {
namespace {

constexpr int64_t kAlignment = 16;  // elements: a cache line of floats

// Hugging Face's rule (Trainer.get_decay_parameter_names): no decay on biases and LayerNorm.
bool decays(Role role, ParameterPart part) {
  return part == ParameterPart::weight && !is_norm(role);
}

// Appends parameters of one layer to a table; offsets are given later.
class Builder {
 public:
  Builder(const Architecture& architecture, std::vector<Parameter>& out)
      : architecture_(architecture), out_(out) {}
  void layer(int number, bool head) {
    layer_ = number;
    head_ = head;
  }
  void weight(Role role, int64_t out, int64_t in) {
    add(role, ParameterPart::weight, {out, in}, Parameter::Init::normal);
  }
  void bias(Role role, int64_t n) { add(role, ParameterPart::bias, {n}, Parameter::Init::zeros); }
  void linear(Role role, int64_t out, int64_t in) {
    weight(role, out, in);
    bias(role, out);
  }
  void layer_norm(Role role, int64_t n) {
    add(role, ParameterPart::weight, {n}, Parameter::Init::ones);
    bias(role, n);
  }

 private:
  void add(Role role, ParameterPart part, std::vector<int64_t> shape, Parameter::Init init) {
    Parameter& p = out_.emplace_back();
    p.name = architecture_.module_of(role, layer_ - 1);
    p.name += part == ParameterPart::weight ? ".weight" : ".bias";
    p.shape = std::move(shape);
    p.decay = decays(role, part);
    p.layer = layer_;
    p.init = init;
    p.role = role;
    p.part = part;
    p.head = head_;
  }

  const Architecture& architecture_;
  std::vector<Parameter>& out_;
  int layer_ = 0;
  bool head_ = false;
};

void add_encoder_layer(Builder& builder, const BertConfig& config) {
  const int64_t h = config.hidden_size;
  builder.layer_norm(Role::output_norm, h);
  builder.linear(Role::output, h, config.intermediate_size);
  builder.linear(Role::inner, config.intermediate_size, h);
  builder.layer_norm(Role::attention_norm, h);
  builder.linear(Role::attention_output, h, h);
  for (Role role : {Role::query, Role::key, Role::value}) builder.weight(role, h, h);
  for (Role role : {Role::query, Role::key, Role::value}) builder.bias(role, h);
}

// True for a tensor that follows its predecessor without a gap.
bool joined_to_previous(const Parameter& parameter) {
  return parameter.role == Role::key || parameter.role == Role::value;
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

ParameterTable::ParameterTable(const BertConfig& config, Head head)
    : architecture_(config.architecture), head_(head) {
  Builder builder(*architecture_, parameters_);
  const int64_t h = config.hidden_size;
  builder.layer(int(config.num_hidden_layers) + 1, true);
  builder.linear(traits_of(head.kind).role, head.outputs, h);
  if (head.kind == HeadKind::sequence) builder.linear(Role::pooler, h, h);
  for (int64_t i = config.num_hidden_layers; i-- > 0;) {
    builder.layer(int(i) + 1, false);
    add_encoder_layer(builder, config);
  }
  builder.layer(0, false);
  builder.layer_norm(Role::embedding_norm, h);
  if (architecture_->has(Role::type_embeddings)) {
    builder.weight(Role::type_embeddings, config.type_vocab_size, h);
  }
  builder.weight(Role::position_embeddings, config.max_position_embeddings, h);
  builder.weight(Role::word_embeddings, config.vocab_size, h);
  parameters_.back().zero_row = config.pad_token_id;

  for (Parameter& p : parameters_) {
    if (!joined_to_previous(p)) size_ = (size_ + kAlignment - 1) / kAlignment * kAlignment;
    p.offset = size_;
    size_ += p.size();
  }
  size_ = (size_ + kAlignment - 1) / kAlignment * kAlignment;
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

const Parameter* ParameterTable::find(Role role, ParameterPart part, int64_t layer) const {
  auto found = std::find_if(parameters_.begin(), parameters_.end(), [&](const Parameter& p) {
    return p.role == role && p.part == part && (!is_of_layer(role) || p.layer == layer + 1);
  });
  return found == parameters_.end() ? nullptr : &*found;
}

Tensor ParameterTable::view(float* arena, const Parameter& p) const {
  if (p.shape.size() == 1) return vector(arena + p.offset, p.shape[0]);
  return matrix(arena + p.offset, p.shape[0], p.shape[1]);
}

Tensor ParameterTable::view(float* arena, std::string_view name) const {
  const Parameter* parameter = find(name);
  FINETUNE_CHECK(parameter != nullptr);
  return view(arena, *parameter);
}

void initialize(const ParameterTable& table, const Parameter& parameter, double initializer_range,
                uint64_t seed, float* arena) {
  const Tensor view = table.view(arena, parameter);
  float* values = view.f32();
  const int64_t count = parameter.size();
  if (parameter.init != Parameter::Init::normal) {
    std::fill(values, values + count, parameter.init == Parameter::Init::ones ? 1.0f : 0.0f);
    return;
  }
  const PhiloxKey key = derive_key(seed, uint32_t(RandomUse::initial_weights));
  const uint64_t name = hash_of(parameter.name);
  constexpr int64_t kGrain = 1 << 14;  // a multiple of the four values of a block
  parallel_ranges(count, kGrain, [&](int64_t begin, int64_t end) {
    PhiloxBlock bits{};
    for (int64_t i = begin; i < end; ++i) {
      if (i % 4 == 0) {
        uint64_t block = uint64_t(i) / 4;
        bits = philox(
            key, {uint32_t(block), uint32_t(block >> 32), uint32_t(name), uint32_t(name >> 32)});
      }
      values[i] = float(initializer_range * normal_value(bits, size_t(i % 4)));
    }
  });
  if (parameter.zero_row >= 0) {
    float* row = values + parameter.zero_row * view.cols;
    std::fill(row, row + view.cols, 0.0f);
  }
}

void initialize(const ParameterTable& table, double initializer_range, uint64_t seed,
                float* arena) {
  for (const Parameter& parameter : table.parameters()) {
    initialize(table, parameter, initializer_range, seed, arena);
  }
}

}  // namespace finetune

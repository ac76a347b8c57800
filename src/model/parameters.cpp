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
bool decays(std::string_view name) {
  return name.find("bias") == name.npos && name.find("LayerNorm") == name.npos;
}

// Appends parameters of one layer to a table; offsets are given later.
class Builder {
 public:
  Builder(std::vector<Parameter>& out) : out_(out) {}
  void layer(int number, bool head) {
    layer_ = number;
    head_ = head;
  }
  void add(const std::string& name, std::vector<int64_t> shape, Parameter::Init init) {
    out_.push_back({name, std::move(shape), 0, decays(name), layer_, init, head_});
  }
  void weight(const std::string& module, int64_t out, int64_t in) {
    add(module + ".weight", {out, in}, Parameter::Init::normal);
  }
  void bias(const std::string& module, int64_t n) {
    add(module + ".bias", {n}, Parameter::Init::zeros);
  }
  void linear(const std::string& module, int64_t out, int64_t in) {
    weight(module, out, in);
    bias(module, out);
  }
  void layer_norm(const std::string& module, int64_t n) {
    add(module + ".weight", {n}, Parameter::Init::ones);
    bias(module, n);
  }

 private:
  std::vector<Parameter>& out_;
  int layer_ = 0;
  bool head_ = false;
};

void add_encoder_layer(Builder& builder, const BertConfig& config, int64_t index) {
  const int64_t h = config.hidden_size;
  const std::string prefix = concat("bert.encoder.layer.", index, ".");
  builder.layer_norm(prefix + "output.LayerNorm", h);
  builder.linear(prefix + "output.dense", h, config.intermediate_size);
  builder.linear(prefix + "intermediate.dense", config.intermediate_size, h);
  builder.layer_norm(prefix + "attention.output.LayerNorm", h);
  builder.linear(prefix + "attention.output.dense", h, h);
  for (const char* part : {"query", "key", "value"}) {
    builder.weight(prefix + "attention.self." + part, h, h);
  }
  for (const char* part : {"query", "key", "value"}) {
    builder.bias(prefix + "attention.self." + part, h);
  }
}

// True for a tensor that follows its predecessor without a gap.
bool joined_to_previous(std::string_view name) {
  return name.find("self.key.") != name.npos || name.find("self.value.") != name.npos;
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

ParameterTable::ParameterTable(const BertConfig& config, Head head) : head_(head) {
  Builder builder(parameters_);
  const int64_t h = config.hidden_size;
  builder.layer(int(config.num_hidden_layers) + 1, true);
  builder.linear(std::string(traits_of(head.kind).module), head.outputs, h);
  if (head.kind == HeadKind::sequence) builder.linear("bert.pooler.dense", h, h);
  for (int64_t i = config.num_hidden_layers; i-- > 0;) {
    builder.layer(int(i) + 1, false);
    add_encoder_layer(builder, config, i);
  }
  builder.layer(0, false);
  const std::string prefix = "bert.embeddings.";
  builder.layer_norm(prefix + "LayerNorm", h);
  builder.weight(prefix + "token_type_embeddings", config.type_vocab_size, h);
  builder.weight(prefix + "position_embeddings", config.max_position_embeddings, h);
  builder.weight(prefix + "word_embeddings", config.vocab_size, h);
  parameters_.back().zero_row = config.pad_token_id;

  for (Parameter& p : parameters_) {
    if (!joined_to_previous(p.name)) size_ = (size_ + kAlignment - 1) / kAlignment * kAlignment;
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

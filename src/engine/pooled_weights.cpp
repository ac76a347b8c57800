// Adds a pooling layer, a nearly linear dense layer and a head to the weights of an encoder.
#include "engine/pooled_weights.h"

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "core/files/files.h"
#include "core/text/json_value.h"
#include "core/text/text.h"
#include "model/parameters.h"

namespace finetune {
namespace {

// The key of config.json that tells people and pooling_of() about the added layer.
constexpr const char* kPoolingKey = "finetune_pooling";
// Factors of the value and output weights: the mean counts their product, the token's own state 1.
constexpr float kValueWeight = 32, kOutputWeight = 64;

// With queries and keys of zero, each token attends to all alike, so rotation does not matter.
bool may_get_layer(const EncoderConfig& config) {
  const LayerBlock& layer = config.layer;
  return !layer.norm_before && !layer.position_bias && layer.score_terms == 1 && layer.groups == 0;
}

// The dense layer multiplies features by `weight` and adds `bias`, so that its activation has a
// slope of about 1: around 0 for tanh, above 0 for GELU and ReLU. The head is fitted to features
// that have passed through the layer, so this loses no accuracy. A smaller weight would need larger
// ones in the head, and then further training would change the logits by hundreds.
struct PassOn {
  float weight = 0, bias = 0;
};

// Returns nothing for a head that does more than such a layer, or has another activation.
std::optional<PassOn> pass_on(const HeadBlock& head) {
  constexpr float kSmall = 0.25f, kAboveZero = 4;
  if (head.norm || head.mean || !head.dense_bias) return std::nullopt;
  switch (head.activation) {
    case Activation::tanh:
      return PassOn{kSmall, 0};
    case Activation::gelu:
    case Activation::gelu_tanh:
    case Activation::relu:
      return PassOn{1, kAboveZero};
    default:
      return std::nullopt;
  }
}

// Whether sentence-transformers' file says that the model was trained with the first token.
bool is_pooled_by_first(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / "1_Pooling" / "config.json";
  if (kind_of(path, ExitCode::model) != FileKind::file) return false;
  const JsonValue json = JsonValue::parse(read_text_file(path, ExitCode::model));
  return json["pooling_mode_cls_token"].as<bool>() == true;
}

// Returns a (rows, size) matrix: zeros, and in the last `size` rows a multiple of the identity.
std::vector<float> diagonal(int64_t size, float value, int64_t rows) {
  std::vector<float> out(size_t(rows * size));
  for (int64_t i = 0; i < size; ++i) out[size_t((rows - size + i) * size + i)] = value;
  return out;
}
std::vector<float> diagonal(int64_t size, float value) {
  return diagonal(size, value, size);
}

std::vector<float> weights_behind(PassOn pass, const LinearHead& head) {
  std::vector<float> out = head.weight;
  for (float& value : out) value /= pass.weight;
  return out;
}

// Returns the head's biases less what the dense layer's bias adds to each output.
std::vector<float> biases_behind(PassOn pass, const LinearHead& head) {
  const std::vector<float> weights = weights_behind(pass, head);
  std::vector<float> out = head.bias;
  const size_t width = weights.size() / out.size();
  for (size_t c = 0; c < out.size(); ++c) {
    double sum = 0;
    for (size_t i = 0; i < width; ++i) sum += double(weights[c * width + i]);
    out[c] = float(double(out[c]) - sum * double(pass.bias));
  }
  return out;
}

// Returns an added tensor's values: zeros, ones, a multiple of the identity, or the fitted head.
std::vector<float> values_of(const Parameter& parameter, const LinearHead& head, PassOn pass) {
  const int64_t rows = parameter.whole_shape.front();
  const bool weight = parameter.part == ParameterPart::weight;
  switch (parameter.role) {
    case Role::query:  // its tensor may hold queries, keys and values
      if (weight && rows > parameter.whole_shape[1]) return diagonal(rows / 3, kValueWeight, rows);
      break;
    case Role::value:
      if (weight) return diagonal(rows, kValueWeight);
      break;
    case Role::attention_output:
      if (weight) return diagonal(rows, kOutputWeight);
      break;
    case Role::attention_norm:
    case Role::output_norm:
      if (weight) return std::vector<float>(size_t(rows), 1.0f);
      break;
    case Role::pooler:
      if (weight) return diagonal(rows, pass.weight);
      return std::vector<float>(size_t(rows), pass.bias);
    case Role::sequence_head:
      return weight ? weights_behind(pass, head) : biases_behind(pass, head);
    default:
      break;
  }
  return std::vector<float>(size_t(parameter.slice.rows * parameter.slice.cols));
}

class PooledWeights final : public WeightSource {
 public:
  PooledWeights(const WeightSource& encoder, const EncoderConfig& config, const LinearHead& head)
      : WeightSource(encoder), encoder_(encoder) {
    tensors_.clear();
    by_name_.clear();
    add_tensors(config, head);
    own_ = tensors_.size();
    for (const WeightInfo& info : encoder_.tensors()) {
      const bool is_new =
          std::none_of(tensors_.begin(), tensors_.begin() + int64_t(own_),
                       [&](const WeightInfo& own) { return own.name == info.name; });
      if (is_new) tensors_.push_back(info);
    }
    for (size_t i = 0; i < tensors_.size(); ++i) by_name_.emplace(tensors_[i].name, i);
  }

  void require_own_bytes(const std::vector<const WeightInfo*>& wanted) const override {
    std::vector<const WeightInfo*> stored;
    for (const WeightInfo* info : wanted) {
      if (number_of(*info) >= own_) stored.push_back(encoder_.find(info->name));
    }
    encoder_.require_own_bytes(stored);
  }
  void read(const WeightInfo& info, float* out) const override {
    const size_t number = number_of(info);
    if (number >= own_) return encoder_.read(*encoder_.find(info.name), out);
    std::copy(values_[number].begin(), values_[number].end(), out);
  }

 private:
  size_t number_of(const WeightInfo& info) const { return size_t(&info - tensors_.data()); }

  void add_tensors(const EncoderConfig& config, const LinearHead& head) {
    const ParameterTable table(config, {HeadKind::sequence, int64_t(head.bias.size())});
    const int added = pooling_of(config) == Pooling::mean ? int(config.num_hidden_layers) : -1;
    for (const Parameter& parameter : table.parameters()) {
      if (parameter.layer != added && !parameter.head) continue;
      tensors_.push_back({parameter.name, parameter.name, parameter.whole_shape, DType::f32});
      values_.push_back(values_of(parameter, head, pass_on(config.head).value()));
    }
  }

  const WeightSource& encoder_;
  std::vector<std::vector<float>> values_;  // of the first `own_` tensors
  size_t own_ = 0;
};

}  // namespace

Pooling pooling_of(const EncoderConfig& config) {
  return JsonValue::parse(config.source_json).contains(kPoolingKey) ? Pooling::mean
                                                                    : Pooling::first;
}

bool can_pass_on(const EncoderConfig& config) {
  return pass_on(config.head).has_value();
}

EncoderConfig with_pooling(EncoderConfig config, const std::filesystem::path& directory,
                           PoolingChoice choice) {
  if (!can_pass_on(config)) {
    throw usage_error("--recipe quick: a head of ", config.architecture->class_prefix,
                      " cannot pass on the features of a frozen encoder; use --recipe auto");
  }
  if (pooling_of(config) == Pooling::mean) {  // the model of an earlier run has the layer
    if (choice != PoolingChoice::first) return config;
    throw usage_error("--pooling cls: the last layer of ", directory.string(),
                      " takes the mean already (--recipe quick); give the pretrained model");
  }
  if (choice == PoolingChoice::mean && !may_get_layer(config)) {
    throw usage_error("--pooling mean: the layers of ", config.architecture->class_prefix,
                      " cannot take the mean of all tokens; use --pooling cls");
  }
  const bool is_first = choice == PoolingChoice::automatic
                            ? !may_get_layer(config) || is_pooled_by_first(directory)
                            : choice == PoolingChoice::first;
  if (is_first) return config;
  config.num_hidden_layers += 1;
  JsonValue json = JsonValue::parse(config.source_json);
  FINETUNE_CHECK(json.is_object());
  const char* key = "num_hidden_layers";
  for (const char* other : {"n_layers", "n_layer"}) {
    if (json.contains(other)) key = other;
  }
  json.set(key, config.num_hidden_layers);
  json.set(kPoolingKey, "the last layer is the mean of all tokens");
  config.source_json = json.text();
  return config;
}

EncoderConfig without_pooling(EncoderConfig config) {
  JsonValue json = JsonValue::parse(config.source_json);
  if (!json.contains(kPoolingKey)) return config;
  json.erase(kPoolingKey);
  config.source_json = json.text();
  return config;
}

LinearHead LinearHead::identity(int64_t size) {
  return {diagonal(size, 1), std::vector<float>(size_t(size))};
}

std::unique_ptr<WeightSource> pooled_weights(const WeightSource& encoder,
                                             const EncoderConfig& config, const LinearHead& head) {
  return std::make_unique<PooledWeights>(encoder, config, head);
}

}  // namespace finetune

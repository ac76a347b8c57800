// Checks values of config.json, and the sizes that every encoder has.
#include "model/architectures/config_reader.h"

#include <simdjson.h>

#include <map>

#include "core/text/json_text.h"
#include "core/text/text.h"
#include "model/config.h"

namespace finetune {
namespace {

// Token ids are 32-bit; a dropout element of attention is query * length + key in 32 bits.
constexpr int64_t kMostIds = (int64_t{1} << 31) - 1;
constexpr int64_t kMostPositions = int64_t{1} << 16;
constexpr double kMostParameters = 0x1p40;  // a thousand billion

double parameters_of(const EncoderConfig& c) {
  const double h = double(c.hidden_size);
  const double embeddings =
      double(c.embedding_size()) *
      (double(c.vocab_size) + double(c.position_rows()) + double(c.type_vocab_size));
  const double feed_forward = double(c.intermediate_size) + double(c.inner_rows());
  return embeddings + double(c.num_hidden_layers) * h * (4 * h + feed_forward);
}

void check_size(const ConfigReader& reader, const SizeKeys& keys, const EncoderConfig& c) {
  if (parameters_of(c) <= kMostParameters) return;
  throw reader.error("vocab_size ", c.vocab_size, ", ", keys.hidden.name, " ", c.hidden_size, ", ",
                     keys.layers.name, " ", c.num_hidden_layers, ", ", keys.inner.name, " ",
                     c.intermediate_size, " and type_vocab_size ", c.type_vocab_size, " make ",
                     format_fixed(parameters_of(c) / 1e9, 0),
                     " billion parameters: more than any machine can hold");
}

}  // namespace

std::string_view ConfigReader::find(ConfigKey key, simdjson::dom::element& value) const {
  for (std::string_view name : {key.name, key.other}) {
    simdjson::dom::element found;
    if (name.empty() || object_[name].get(found) != simdjson::SUCCESS || found.is_null()) continue;
    value = found;
    return name;
  }
  return {};
}

void ConfigReader::integer(ConfigKey key, int64_t least, int64_t most, int64_t& out) const {
  simdjson::dom::element value;
  const std::string_view name = find(key, value);
  if (name.empty()) return;
  if (value.get(out) != simdjson::SUCCESS || out < least || out > most) {
    throw error(name, " is ", shown(value), ", not an integer from ", least, " to ", most);
  }
  simdjson::dom::element other;
  int64_t same = out;
  if (name == key.other || find(key.other, other).empty()) return;
  if (other.get(same) == simdjson::SUCCESS && same != out) {
    throw error(key.name, " is ", out, " and ", key.other, " is ", same,
                ", which mean the same: remove one of them");
  }
}

void ConfigReader::number(ConfigKey key, double least, double most, double& out) const {
  simdjson::dom::element value;
  const std::string_view name = find(key, value);
  if (name.empty()) return;
  if (value.get(out) != simdjson::SUCCESS || !(out >= least && out <= most)) {
    throw error(name, " is ", shown(value), ", not a number from ", least, " to ", most);
  }
}

void ConfigReader::probability(ConfigKey key, double& out) const {
  simdjson::dom::element value;
  number(key, 0, 1, out);
  if (out >= 1) {
    throw error(find(key, value), " is ", out, ": a dropout probability must be below 1");
  }
}

void ConfigReader::activation(ConfigKey key, Activation& out) const {
  static const std::map<std::string, Activation, std::less<>> names = {
      {"gelu", Activation::gelu},
      {"gelu_new", Activation::gelu_tanh},
      {"gelu_pytorch_tanh", Activation::gelu_tanh},
      {"relu", Activation::relu},
      {"silu", Activation::silu},
      {"swish", Activation::silu},
      {"tanh", Activation::tanh}};
  const std::string name = text(key, "");
  simdjson::dom::element value;
  const std::string_view key_name = find(key, value);
  if (key_name.empty()) return;
  const auto found = names.find(name);
  if (found == names.end()) {
    throw error(key_name, " ", in_quotes(name),
                " is unknown; known are gelu, gelu_new, gelu_pytorch_tanh, relu, silu, swish, "
                "tanh");
  }
  out = found->second;
}

std::string ConfigReader::text(ConfigKey key, std::string_view otherwise) const {
  simdjson::dom::element value;
  const std::string_view name = find(key, value);
  if (name.empty()) return std::string(otherwise);
  std::string_view out;
  if (value.get(out) != simdjson::SUCCESS)
    throw error(name, " is ", shown(value), ", not a string");
  return std::string(out);
}

bool ConfigReader::flag(ConfigKey key) const {
  simdjson::dom::element value;
  bool out = false;
  return !find(key, value).empty() && value.get(out) == simdjson::SUCCESS && out;
}

void ConfigReader::truth(ConfigKey key, bool& out) const {
  simdjson::dom::element value;
  const std::string_view name = find(key, value);
  if (name.empty()) return;
  if (value.get(out) != simdjson::SUCCESS) {
    throw error(name, " is ", shown(value), ", not true or false");
  }
}

std::vector<std::string> ConfigReader::texts(ConfigKey key) const {
  simdjson::dom::element value;
  std::vector<std::string> out;
  const std::string_view name = find(key, value);
  if (name.empty()) return out;
  simdjson::dom::array array;
  if (value.get(array) != simdjson::SUCCESS) {
    throw error(name, " is ", shown(value), ", not a list");
  }
  for (auto element : array) {
    std::string_view text;
    if (element.get(text) != simdjson::SUCCESS) {
      throw error(name, " has ", shown(element), ", not a string");
    }
    out.emplace_back(text);
  }
  return out;
}

std::vector<std::string> ConfigReader::choices(ConfigKey key) const {
  simdjson::dom::element value;
  std::string_view text;
  std::vector<std::string> parts, out;
  if (find(key, value).empty()) return out;
  if (value.get(text) == simdjson::SUCCESS) {
    for (std::string_view part : split(text, '|')) parts.emplace_back(part);
  } else {
    parts = texts(key);
  }
  for (const std::string& part : parts) {
    std::string& choice = out.emplace_back();
    for (char c : part) {
      if (c != ' ') choice += c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
    }
  }
  return out;
}

bool ConfigReader::is_null(std::string_view key) const {
  simdjson::dom::element value;
  return object_[key].get(value) == simdjson::SUCCESS && value.is_null();
}

bool ConfigReader::find_at(Path path, simdjson::dom::element& value) const {
  simdjson::dom::object object = object_;
  for (size_t i = 0; i < path.size(); ++i) {
    if (object[path[i]].get(value) != simdjson::SUCCESS || value.is_null()) return false;
    if (i + 1 < path.size() && value.get(object) != simdjson::SUCCESS) {
      throw error(path[i], " is ", shown(value), ", not an object");
    }
  }
  return true;
}

void ConfigReader::number_at(Path path, double least, double most, double& out) const {
  simdjson::dom::element value;
  if (!find_at(path, value)) return;
  if (value.get(out) != simdjson::SUCCESS || !(out >= least && out <= most)) {
    throw error(path.back(), " is ", shown(value), ", not a number from ", least, " to ", most);
  }
}

std::string ConfigReader::text_at(Path path, std::string_view otherwise) const {
  simdjson::dom::element value;
  std::string_view text = otherwise;
  if (find_at(path, value) && value.get(text) != simdjson::SUCCESS) {
    throw error(path.back(), " is ", shown(value), ", not a string");
  }
  return std::string(text);
}

std::string ConfigReader::shown(simdjson::dom::element value) {
  std::string_view text;
  if (value.get(text) == simdjson::SUCCESS) return in_quotes(text);
  if (value.is_object()) return "an object";
  return value.is_array() ? "a list" : simdjson::minify(value);
}

void require_narrow_embeddings(const ConfigReader& reader, const EncoderConfig& c) {
  if (c.embeddings.narrow_size <= c.hidden_size) return;
  throw reader.error("embedding_size ", c.embeddings.narrow_size, " is above hidden_size ",
                     c.hidden_size, ": only narrower embeddings can be loaded");
}

void read_sizes(const ConfigReader& reader, const SizeKeys& keys, EncoderConfig& c) {
  reader.integer("vocab_size", 1, kMostIds, c.vocab_size);
  reader.integer(keys.hidden, 1, kWidest, c.hidden_size);
  reader.integer(keys.layers, 1, kMostLayers, c.num_hidden_layers);
  reader.integer(keys.heads, 1, kWidest, c.num_attention_heads);
  reader.integer(keys.inner, 1, kWidest, c.intermediate_size);
  reader.integer("max_position_embeddings", c.embeddings.first_position + 1, kMostPositions,
                 c.max_position_embeddings);
  if (c.type_vocab_size > 0) reader.integer("type_vocab_size", 1, kMostIds, c.type_vocab_size);
  if (c.hidden_size % c.num_attention_heads != 0) {
    throw reader.error(keys.hidden.name, " ", c.hidden_size, " is not a multiple of ",
                       keys.heads.name, " ", c.num_attention_heads);
  }
  if (c.max_length() < 1) {
    throw reader.error("max_position_embeddings ", c.max_position_embeddings,
                       " leaves no position for a text, whose first token has position ",
                       c.embeddings.first_position);
  }
  check_size(reader, keys, c);
  reader.integer("pad_token_id", 0, c.vocab_size - 1, c.pad_token_id);
  if (reader.is_null("pad_token_id")) c.pad_token_id = -1;
  if (c.pad_token_id >= c.vocab_size) {
    throw reader.error("pad_token_id ", c.pad_token_id, " (the default) is not below vocab_size ",
                       c.vocab_size);
  }
}

}  // namespace finetune

// Reads and checks config.json, and knows the shapes tiny, minilm, base and large.
#include "model/config.h"

#include <simdjson.h>

#include <map>
#include <optional>
#include <unordered_map>

#include "core/error.h"
#include "core/text/json_fault.h"
#include "core/text/json_text.h"

namespace finetune {
namespace {

// Token ids are 32-bit; a dropout element of attention is query * length + key in 32 bits.
constexpr int64_t kMostIds = (int64_t{1} << 31) - 1;
constexpr int64_t kMostPositions = int64_t{1} << 16;
constexpr int64_t kWidest = int64_t{1} << 20;
constexpr int64_t kMostLayers = 4096;
constexpr double kMostParameters = 0x1p40;  // a thousand billion
// What keeps the order of keys compares each with all before it.
constexpr size_t kMostMembers = size_t{1} << 16;

// Reads keys of one JSON object; every error names the file and the key.
class ConfigReader {
 public:
  ConfigReader(simdjson::dom::object object, const std::filesystem::path& path)
      : object_(object), path_(path) {}

  template <typename... Parts>
  Error error(const Parts&... parts) const {
    return model_error(path_.string(), ": ", parts...);
  }

  // The value of `key`, or nothing where it is absent or null.
  std::optional<simdjson::dom::element> find(std::string_view key) const {
    simdjson::dom::element value;
    if (object_[key].get(value) != simdjson::SUCCESS || value.is_null()) return std::nullopt;
    return value;
  }

  void integer(std::string_view key, int64_t least, int64_t most, int64_t& out) const {
    auto value = find(key);
    if (!value) return;
    if (value->get(out) != simdjson::SUCCESS || out < least || out > most) {
      throw error(key, " is ", shown(*value), ", not an integer from ", least, " to ", most);
    }
  }

  void number(std::string_view key, double least, double most, double& out) const {
    auto value = find(key);
    if (!value) return;
    if (value->get(out) != simdjson::SUCCESS || !(out >= least && out <= most)) {
      throw error(key, " is ", shown(*value), ", not a number from ", least, " to ", most);
    }
  }

  // A dropout probability: below 1.
  void probability(std::string_view key, double& out) const {
    number(key, 0, 1, out);
    if (out >= 1) throw error(key, " is ", out, ": a dropout probability must be below 1");
  }

  std::string text(std::string_view key, std::string_view otherwise) const {
    auto value = find(key);
    if (!value) return std::string(otherwise);
    std::string_view out;
    if (value->get(out) != simdjson::SUCCESS) {
      throw error(key, " is ", shown(*value), ", not a string");
    }
    return std::string(out);
  }

  bool flag(std::string_view key) const {
    auto value = find(key);
    bool out = false;
    return value && value->get(out) == simdjson::SUCCESS && out;
  }

  static std::string shown(simdjson::dom::element value) {
    std::string_view text;
    if (value.get(text) == simdjson::SUCCESS) return in_quotes(text);
    if (value.is_object()) return "an object";
    return value.is_array() ? "a list" : simdjson::minify(value);
  }

 private:
  simdjson::dom::object object_;
  const std::filesystem::path& path_;
};

Activation read_activation(const ConfigReader& reader) {
  static const std::map<std::string, Activation, std::less<>> names = {
      {"gelu", Activation::gelu},
      {"gelu_new", Activation::gelu_tanh},
      {"gelu_pytorch_tanh", Activation::gelu_tanh},
      {"relu", Activation::relu},
      {"silu", Activation::silu},
      {"swish", Activation::silu},
      {"tanh", Activation::tanh}};
  std::string name = reader.text("hidden_act", "gelu");
  auto found = names.find(name);
  if (found != names.end()) return found->second;
  throw reader.error("hidden_act ", in_quotes(name),
                     " is unknown; known are gelu, gelu_new, gelu_pytorch_tanh, relu, silu, "
                     "swish, tanh");
}

// The names in order of id. Error(model) for ids that do not run from 0 without a gap, and for a
// name that two ids have.
std::vector<std::string> in_order_of_id(const ConfigReader& reader, std::string_view key,
                                        std::map<int64_t, std::string> by_id) {
  std::vector<std::string> labels;
  std::unordered_map<std::string_view, int64_t> ids;
  for (const auto& [id, name] : by_id) {
    if (id != int64_t(ids.size())) {
      throw reader.error(key, " has ", id, " but not ", ids.size(),
                         ": ids must run from 0 without a gap");
    }
    const auto [other, is_new] = ids.emplace(name, id);
    if (!is_new) {
      throw reader.error(key, ": ", other->second, " and ", id, " have the same label, ",
                         in_quotes(name));
    }
  }
  labels.reserve(by_id.size());
  for (auto& [id, name] : by_id) labels.push_back(std::move(name));
  return labels;
}

// A label as text. Scripts write classes that are numbers or truth values as such: 1 is the label
// "1", as in rows of JSON.
std::string label_text(const ConfigReader& reader, int64_t id, simdjson::dom::element label) {
  std::string_view text;
  if (label.get(text) == simdjson::SUCCESS) return std::string(text);
  if (label.is_number() || label.is_bool()) return simdjson::minify(label);
  throw reader.error("id2label: the label of ", id, " is ", ConfigReader::shown(label),
                     ", not a string");
}

// id2label: an object from "0", "1", ..., "n-1", in any order, to the labels.
std::vector<std::string> labels_by_id(const ConfigReader& reader, simdjson::dom::object object) {
  std::map<int64_t, std::string> by_id;
  for (auto [key, label] : object) {
    const auto id = parse_int(key);
    if (!id) throw reader.error("id2label: key ", in_quotes(key), " is not an integer");
    if (!by_id.emplace(*id, label_text(reader, *id, label)).second) {
      throw reader.error("id2label: ", *id, " occurs twice");
    }
  }
  return in_order_of_id(reader, "id2label", std::move(by_id));
}

// label2id, where it stands alone: an object from the labels to 0, 1, ..., n-1.
std::vector<std::string> labels_of_ids(const ConfigReader& reader, simdjson::dom::object object) {
  std::map<int64_t, std::string> by_id;
  for (auto [label, value] : object) {
    int64_t id = 0;
    if (value.get(id) != simdjson::SUCCESS) {
      throw reader.error("label2id: the id of ", in_quotes(label), " is ",
                         ConfigReader::shown(value), ", not an integer");
    }
    const auto [other, is_new] = by_id.emplace(id, label);
    if (!is_new) {
      throw reader.error("label2id: ", in_quotes(other->second), " and ", in_quotes(label),
                         " have the same id, ", id);
    }
  }
  return in_order_of_id(reader, "label2id", std::move(by_id));
}

// As transformers reads them: what names the labels counts before their number.
std::vector<std::string> read_labels(const ConfigReader& reader) {
  simdjson::dom::object object;
  if (const auto value = reader.find("id2label")) {
    if (value->get(object) != simdjson::SUCCESS) throw reader.error("id2label is not an object");
    if (object.size() > 0) return labels_by_id(reader, object);
  }
  const auto inverse = reader.find("label2id");
  if (inverse && inverse->get(object) == simdjson::SUCCESS && object.size() > 0) {
    return labels_of_ids(reader, object);
  }
  int64_t count = 0;
  for (std::string_view key : {"num_labels", "_num_labels"}) {
    if (!reader.find(key)) continue;
    reader.integer(key, 1, kMostLabels, count);
    return default_labels(count);
  }
  return {};
}

// Members of objects, inner ones too.
void count_members(simdjson::dom::element value, size_t& count) {
  simdjson::dom::object object;
  simdjson::dom::array array;
  if (value.get(object) == simdjson::SUCCESS) {
    for (auto [key, member] : object) {
      ++count;
      count_members(member, count);
    }
  } else if (value.get(array) == simdjson::SUCCESS) {
    for (auto element : array) count_members(element, count);
  }
}

void check_length(const ConfigReader& reader, simdjson::dom::object object) {
  size_t others = 0;
  for (auto [key, value] : object) {
    const bool is_labels = key == "id2label" || key == "label2id";
    size_t count = 0;
    count_members(value, count);
    if (is_labels && count > size_t(kMostLabels)) {
      throw reader.error(key, " has ", count, " entries; ", kMostLabels, " labels are possible");
    }
    others += 1 + (is_labels ? 0 : count);
  }
  if (others > kMostMembers) {
    throw reader.error("has ", others, " entries; no config has more than ", kMostMembers);
  }
}

double parameters_of(const EncoderConfig& c) {
  const double h = double(c.hidden_size);
  const double embeddings =
      h * (double(c.vocab_size) + double(c.max_position_embeddings) + double(c.type_vocab_size));
  return embeddings + double(c.num_hidden_layers) * h * (4 * h + 2 * double(c.intermediate_size));
}

void check_size(const ConfigReader& reader, const EncoderConfig& c) {
  if (parameters_of(c) <= kMostParameters) return;
  throw reader.error("vocab_size ", c.vocab_size, ", hidden_size ", c.hidden_size,
                     ", num_hidden_layers ", c.num_hidden_layers, ", intermediate_size ",
                     c.intermediate_size, " and type_vocab_size ", c.type_vocab_size, " make ",
                     format_fixed(parameters_of(c) / 1e9, 0),
                     " billion parameters: more than any machine can hold");
}

std::string known_types() {
  std::vector<std::string> types;
  for (const Architecture& known : all_architectures()) {
    types.push_back(in_quotes(known.model_type));
  }
  return join(types, " and ");
}

// What this program does not compute must not pass as one that it does.
const Architecture& read_architecture(const ConfigReader& reader) {
  std::string type = reader.text("model_type", default_architecture().model_type);
  const Architecture* architecture = architecture_named(type);
  if (!architecture) {
    throw reader.error("model_type is ", in_quotes(type), "; only ", known_types(),
                       " can be loaded");
  }
  std::string positions = reader.text("position_embedding_type", "absolute");
  if (positions != "absolute") {
    throw reader.error("position_embedding_type is ", in_quotes(positions),
                       "; only 'absolute' is supported");
  }
  for (std::string_view key : {"is_decoder", "add_cross_attention"}) {
    if (reader.flag(key)) throw reader.error(key, " is true; only encoders can be loaded");
  }
  return *architecture;
}

}  // namespace

std::vector<std::string> default_labels(int64_t count) {
  std::vector<std::string> labels;
  for (int64_t i = 0; i < count; ++i) labels.push_back(concat("LABEL_", i));
  return labels;
}

EncoderConfig parse_config(std::string_view json, const std::filesystem::path& path) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  auto fault = parser.parse(padded_copy(json)).get(root);
  if (fault) fault = parser.parse(with_long_integers_as_doubles(json)).get(root);
  if (fault) {
    throw model_error(path.string(), ": not valid JSON (", json_fault(fault), ")");
  }
  simdjson::dom::object object;
  if (root.get(object) != simdjson::SUCCESS) {
    throw model_error(path.string(), ": not a JSON object");
  }
  ConfigReader reader(object, path);
  check_length(reader, object);
  const Architecture& architecture = read_architecture(reader);

  EncoderConfig c;
  c.architecture = &architecture;
  reader.integer("vocab_size", 1, kMostIds, c.vocab_size);
  reader.integer("hidden_size", 1, kWidest, c.hidden_size);
  reader.integer("num_hidden_layers", 1, kMostLayers, c.num_hidden_layers);
  reader.integer("num_attention_heads", 1, kWidest, c.num_attention_heads);
  reader.integer("intermediate_size", 1, kWidest, c.intermediate_size);
  reader.integer("max_position_embeddings", architecture.first_position + 1, kMostPositions,
                 c.max_position_embeddings);
  reader.integer("type_vocab_size", 1, kMostIds, c.type_vocab_size);
  if (c.hidden_size % c.num_attention_heads != 0) {
    throw reader.error("hidden_size ", c.hidden_size, " is not a multiple of num_attention_heads ",
                       c.num_attention_heads);
  }
  check_size(reader, c);
  c.hidden_act = read_activation(reader);
  reader.probability("hidden_dropout_prob", c.hidden_dropout_prob);
  reader.probability("attention_probs_dropout_prob", c.attention_probs_dropout_prob);
  reader.probability("classifier_dropout", c.classifier_dropout);
  reader.number("layer_norm_eps", 0, 1, c.layer_norm_eps);
  reader.number("initializer_range", 0, 1e6, c.initializer_range);
  reader.integer("pad_token_id", 0, c.vocab_size - 1, c.pad_token_id);
  try {
    c.labels = read_labels(reader);
  } catch (const Error& error) {
    c.labels_fault = error.what();
  }
  c.problem_type = reader.text("problem_type", "");
  c.source_json = std::string(json);
  return c;
}

EncoderConfig named_shape(std::string_view name) {
  struct Shape {
    std::string_view name;
    int64_t layers, hidden, heads, intermediate;
  };
  static constexpr Shape shapes[] = {{"tiny", 2, 128, 2, 512},
                                     {"minilm", 6, 384, 12, 1536},
                                     {"base", 12, 768, 12, 3072},
                                     {"large", 24, 1024, 16, 4096}};
  for (const Shape& shape : shapes) {
    if (shape.name != name) continue;
    EncoderConfig c;
    c.num_hidden_layers = shape.layers;
    c.hidden_size = shape.hidden;
    c.num_attention_heads = shape.heads;
    c.intermediate_size = shape.intermediate;
    return c;
  }
  throw usage_error("unknown model shape '", in_quotes(name),
                    "'; known are tiny, minilm, base, large");
}

}  // namespace finetune

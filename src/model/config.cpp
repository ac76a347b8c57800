// Reads and checks config.json, and knows the shapes tiny, minilm, base and large.
#include "model/config.h"

#include <simdjson.h>

#include <cmath>
#include <map>
#include <unordered_map>

#include "core/error.h"
#include "core/text/json_text.h"
#include "model/architectures/config_reader.h"

namespace finetune {
namespace {

// A JSON object that keeps the order of its keys compares each new key with all others.
constexpr size_t kMostMembers = size_t{1} << 16;

// Returns the names in order of id. Error(model): ids do not run from 0 without a gap, or two ids
// have the same name.
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

// Returns a label as text. Scripts write some classes as numbers or booleans: 1 is the label "1",
// as in rows of JSON.
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

// label2id, used if there is no id2label: an object from the labels to 0, 1, ..., n-1.
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

// Reads labels as transformers does: keys with names count before keys with their number.
std::vector<std::string> read_labels(const ConfigReader& reader) {
  simdjson::dom::object object;
  simdjson::dom::element value;
  if (!reader.find("id2label", value).empty()) {
    if (value.get(object) != simdjson::SUCCESS) throw reader.error("id2label is not an object");
    if (object.size() > 0) return labels_by_id(reader, object);
  }
  const bool inverse = !reader.find("label2id", value).empty();
  if (inverse && value.get(object) == simdjson::SUCCESS && object.size() > 0) {
    return labels_of_ids(reader, object);
  }
  int64_t count = 0;
  for (const char* key : {"_num_labels", "num_labels"}) reader.integer(key, 1, kMostLabels, count);
  if (count > 0) return default_labels(count);
  return {};
}

// Counts the members of objects, also of nested ones.
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

// 'bert', 'distilbert', ... and the last one
std::string known_types() {
  std::vector<std::string> types;
  for (const Architecture& known : all_architectures()) {
    types.push_back(in_quotes(known.model_type));
  }
  const std::string last = types.back();
  types.pop_back();
  return concat(join(types, ", "), " and ", last);
}

// The architecture of a class such as "RobertaModel" or "RobertaForMaskedLM", or BERT's: its first
// configurations name none.
const Architecture& architecture_of_class(std::string_view class_name) {
  for (const Architecture& known : all_architectures()) {
    if (!class_name.starts_with(known.class_prefix)) continue;
    const std::string_view kind = class_name.substr(known.class_prefix.size());
    if (kind == "Model" || kind.starts_with("For")) return known;
  }
  return default_architecture();
}

// Refuses a model that this program does not compute.
const Architecture& read_architecture(const ConfigReader& reader, std::string_view class_name) {
  std::string type = reader.text("model_type", architecture_of_class(class_name).model_type);
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
  for (std::string_view key : {"is_decoder", "is_causal", "add_cross_attention"}) {
    if (reader.flag(key)) throw reader.error(key, " is true; only encoders can be loaded");
  }
  return *architecture;
}

// Returns "" for unexpected values: scripts write many, and no error is needed.
std::string read_class_name(simdjson::dom::object object) {
  simdjson::dom::array classes;
  std::string_view name;
  if (object["architectures"].get(classes) != simdjson::SUCCESS || classes.size() == 0) return {};
  return classes.at(0).get(name) == simdjson::SUCCESS ? std::string(name) : std::string();
}

}  // namespace

// In float, as transformers computes it.
int64_t RelativeBlock::row_of(int64_t distance) const {
  const int64_t apart = std::abs(distance), near = buckets / 2;
  int64_t bucket = apart;
  if (buckets > 0 && apart > near) {
    const float width = std::log(float(double(farthest - 1) / double(near)));
    const float share = std::log(float(apart) / float(near)) / width;
    bucket = int64_t(std::ceil(share * float(near - 1))) + near;
  }
  return std::clamp<int64_t>((distance < 0 ? -bucket : bucket) + span, 0, 2 * span - 1);
}

int64_t EncoderConfig::weights_layer(int64_t number) const {
  if (layer.groups == 0) return number;
  const int64_t group = layer_name(number).number;
  int64_t first = number / layer.inner * layer.inner;
  while (first > 0 && layer_name(first - 1).number == group) first -= layer.inner;
  return first + number % layer.inner;
}

bool EncoderConfig::shares_above(int64_t number) const {
  const int64_t above = number + layer.inner;  // the next one that may have the same weights
  return layer.groups > 0 && above < num_hidden_layers &&
         layer_name(above).number == layer_name(number).number;
}

// As Hugging Face divides layers among groups, in double precision.
LayerName EncoderConfig::layer_name(int64_t number) const {
  if (layer.groups == 0) return {number, 0};
  const double layers_of_group = double(num_hidden_layers / layer.inner) / double(layer.groups);
  return {int64_t(double(number / layer.inner) / layers_of_group), number % layer.inner};
}

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
  EncoderConfig c;
  c.class_name = read_class_name(object);
  const Architecture& architecture = read_architecture(reader, c.class_name);
  c.architecture = &architecture;
  architecture.read_config(reader, c);
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

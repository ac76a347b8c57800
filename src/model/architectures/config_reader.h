// Reads values of config.json's keys. Each error names the file, the key and the value.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "ops/backend.h"

// simdjson's header takes a second to compile; architectures need none of it.
namespace simdjson::dom {
class object;
class element;
}  // namespace simdjson::dom

namespace finetune {

struct EncoderConfig;

constexpr int64_t kWidest = int64_t{1} << 20;  // of a layer
constexpr int64_t kMostLayers = 4096;

// The name of a key, and another name for it. If config.json has both, the first one counts, but
// two different integers are refused.
struct ConfigKey {
  std::string_view name, other;
  constexpr ConfigKey(const char* first, std::string_view second = {})
      : name(first), other(second) {}
  constexpr ConfigKey(std::string_view only) : name(only) {}
};

// A key that is absent or null leaves its variable as it is. Error(model): the value has another
// type or is out of range.
class ConfigReader {
 public:
  // Both must outlive the reader.
  ConfigReader(const simdjson::dom::object& object, const std::filesystem::path& path)
      : object_(object), path_(path) {}

  template <typename... Parts>
  Error error(const Parts&... parts) const {
    return model_error(path_.string(), ": ", parts...);
  }

  void integer(ConfigKey key, int64_t least, int64_t most, int64_t& out) const;
  void number(ConfigKey key, double least, double most, double& out) const;
  void probability(ConfigKey key, double& out) const;  // of dropout: below 1
  void activation(ConfigKey key, Activation& out) const;
  std::string text(ConfigKey key, std::string_view otherwise) const;
  bool flag(ConfigKey key) const;  // false for anything but true
  // Writes true or false; Error(model) for another value.
  void truth(ConfigKey key, bool& out) const;
  // The list's strings; empty if the key is absent or null.
  std::vector<std::string> texts(ConfigKey key) const;
  // The same in lower case, from a list or from text with "|" between its parts.
  std::vector<std::string> choices(ConfigKey key) const;
  bool is_null(std::string_view key) const;  // false if the key is absent
  // A key in nested objects: {"rope_parameters", "full_attention", "rope_theta"}.
  using Path = std::span<const std::string_view>;
  void number_at(Path path, double least, double most, double& out) const;
  std::string text_at(Path path, std::string_view otherwise) const;

  // Writes the value of `key`; returns the name under which it was found. Returns an empty one, and
  // writes nothing, if the key is absent or null.
  std::string_view find(ConfigKey key, simdjson::dom::element& value) const;
  // The same along a path; returns false if it ends before the key.
  bool find_at(Path path, simdjson::dom::element& value) const;
  // The value as an error shows it.
  static std::string shown(simdjson::dom::element value);

 private:
  const simdjson::dom::object& object_;
  const std::filesystem::path& path_;
};

// An architecture's keys for the sizes of the encoder.
struct SizeKeys {
  ConfigKey hidden = "hidden_size";
  ConfigKey layers = "num_hidden_layers";
  ConfigKey heads = "num_attention_heads";
  ConfigKey inner = "intermediate_size";
};
// Reads the sizes of embeddings and layers, but type_vocab_size only if it is not 0 in `config`.
// Error(model): a size is out of range, or the number of heads does not divide the hidden size.
void read_sizes(const ConfigReader& reader, const SizeKeys& keys, EncoderConfig& config);
// Error(model): embedding_size is above hidden_size.
void require_narrow_embeddings(const ConfigReader& reader, const EncoderConfig& config);

}  // namespace finetune

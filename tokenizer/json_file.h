// Reads the JSON files of a model directory; errors are Error(model) and name file and key.
#pragma once

#include <simdjson.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/files/files.h"
#include "core/text/json_text.h"

namespace finetune {

// A JSON object in a file. It owns the parsed text that elements point into.
class JsonFile {
 public:
  explicit JsonFile(const std::filesystem::path& path) : path_(path) {
    std::string text = read_text_file(path, ExitCode::model);
    simdjson::dom::element root;
    auto error = parser_.parse(text).get(root);
    if (error) error = parser_.parse(with_long_integers_as_doubles(text)).get(root);
    if (error) {
      throw model_error(path.string(), " is not valid JSON (", json_fault(error), ")");
    }
    if (root.get(root_)) throw model_error(path.string(), " does not hold a JSON object");
  }
  const std::filesystem::path& path() const { return path_; }
  const simdjson::dom::object& root() const { return root_; }

  // Returns member `key` of `object` if present; null counts as absent.
  static std::optional<simdjson::dom::element> find(const simdjson::dom::object& object,
                                                    std::string_view key) {
    simdjson::dom::element value;
    if (object.at_key(key).get(value) || value.is_null()) return std::nullopt;
    return value;
  }
  // Returns the member as a T; a value of another type is an error.
  template <typename T>
  std::optional<T> get(const simdjson::dom::object& object, std::string_view key) const {
    std::optional<simdjson::dom::element> value = find(object, key);
    if (!value) return std::nullopt;
    T out;
    if (value->get(out)) {
      throw model_error(path_.string(), ": \"", key, "\" has an unexpected value (",
                        in_quotes(simdjson::minify(*value)), ")");
    }
    return out;
  }

 private:
  std::filesystem::path path_;
  simdjson::dom::parser parser_;
  simdjson::dom::object root_;
};

}  // namespace finetune

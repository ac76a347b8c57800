// Writes and reads promise.json, and compares it with the model.
#include "tasks/scores/promise_file.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/files.h"
#include "core/sha256.h"
#include "core/text/text.h"

namespace finetune {
namespace {

constexpr int kVersion = 1;
constexpr size_t kMostBytes = size_t{1} << 20;

constexpr const char* kAgain = "; make one with finetune evaluate --max-error";

template <typename T>
T value_of(const nlohmann::json& object, const char* key, const fs::path& file) {
  try {
    return object.at(key).get<T>();
  } catch (const nlohmann::json::exception&) {
    throw model_error(file.string(), ": ", key, " is missing or has an unexpected type");
  }
}

double number_in(const nlohmann::json& object, const char* key, double most, const fs::path& file) {
  const auto value = value_of<double>(object, key, file);
  if (value >= 0 && value <= most) return value;
  throw model_error(file.string(), ": ", key, " is ", value, ", not from 0 to ", most);
}

nlohmann::json parsed(const fs::path& file) {
  if (!path_exists(file, ExitCode::model)) {
    throw model_error(file.string(), ": is missing: the model has no promise", kAgain);
  }
  const MappedFile bytes(file, ExitCode::model);
  nlohmann::json json;
  if (bytes.text().size() <= kMostBytes) json = nlohmann::json::parse(bytes.text(), nullptr, false);
  if (!json.is_object()) throw model_error(file.string(), ": is damaged", kAgain);
  return json;
}

void require_same(const PromisedModel& model, const nlohmann::json& json, const fs::path& file) {
  const auto require = [&](const char* key, const std::string& now, const char* what) {
    const auto then = value_of<std::string>(json, key, file);
    if (then == now) return;
    throw model_error(file.string(), ": was made for ", what, then.size() > 40 ? "" : then, kAgain);
  };
  require("config_sha256", sha256_of_file(model.config), "another config.json");
  require("weights_sha256", sha256_of_file(model.weights), "other weights");
  const auto then = value_of<std::string>(json, "answers", file);
  if (then == model.answers) return;
  throw model_error(file.string(), ": was made with ", then, ", this call has ", model.answers,
                    "; leave the options out that differ");
}

}  // namespace

std::string answers_in_words(const TaskOptions& options) {
  return concat("max-length ", options.max_length, ", ",
                options.long_texts.in_windows ? concat("windows ", options.long_texts.stride, "/",
                                                       options.long_texts.most_windows)
                                              : "no windows",
                options.uses_mix && options.mix ? ", n-gram mix" : "",
                options.calibration == LogitCalibration() ? "" : ", calibration");
}

void check_promise_output(const PromisedModel& model, bool overwrite) {
  const fs::path file = model.directory / kPromiseFile;
  if (overwrite || !path_exists(file, ExitCode::model)) return;
  throw usage_error(file.string(),
                    ": the model has a promise; --overwrite replaces it (on the same rows a second "
                    "try weakens the confidence)");
}

void write_promise(const PromisedModel& model, const Promise& promise) {
  FINETUNE_CHECK(promise.threshold.has_value());
  nlohmann::ordered_json json;
  json["version"] = kVersion;
  json["max_error"] = promise.wanted.max_error;
  json["confidence"] = promise.wanted.confidence;
  json["threshold"] = *promise.threshold;
  json["rows"] = promise.rows;
  json["automatic"] = promise.automatic;
  json["wrong"] = promise.wrong;
  json["answers"] = model.answers;
  json["config_sha256"] = sha256_of_file(model.config);
  json["weights_sha256"] = sha256_of_file(model.weights);
  write_file(model.directory / kPromiseFile, json.dump(2) + "\n");
}

Promise read_promise(const PromisedModel& model) {
  const fs::path file = model.directory / kPromiseFile;
  const nlohmann::json json = parsed(file);
  if (const auto version = value_of<int64_t>(json, "version", file); version != kVersion) {
    throw model_error(file.string(), ": has version ", version, "; this program reads version ",
                      kVersion);
  }
  Promise out;
  out.wanted = {number_in(json, "max_error", 1, file), number_in(json, "confidence", 1, file)};
  out.threshold = number_in(json, "threshold", 1, file);
  out.rows = value_of<int64_t>(json, "rows", file);
  out.automatic = value_of<int64_t>(json, "automatic", file);
  out.wrong = value_of<int64_t>(json, "wrong", file);
  require_same(model, json, file);
  return out;
}

}  // namespace finetune

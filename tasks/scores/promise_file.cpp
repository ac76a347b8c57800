// Writes and reads promise.json, and compares it with the model.
#include "tasks/scores/promise_file.h"

#include "core/error.h"
#include "core/files/files.h"
#include "core/log.h"
#include "core/sha256.h"
#include "core/text/json_value.h"
#include "core/text/shown_numbers.h"
#include "core/text/text.h"
#include "tasks/classification/calibration/promise.h"
#include "tasks/classification/model_options.h"
#include "tasks/classification/predictions/prediction_checks.h"
#include "tasks/classification/rows/dataset.h"

namespace finetune {
namespace {

constexpr int kVersion = 1;
constexpr int64_t kMostRows = int64_t{1} << 40;
constexpr size_t kMostBytes = size_t{1} << 20;

constexpr const char* kAgain = "; make one with finetune evaluate --max-error";

template <typename T>
T value_of(const JsonValue& object, const char* key, const fs::path& file) {
  if (auto value = object[key].as<T>()) return *std::move(value);
  throw model_error(file.string(), ": ", key, " is missing or has an unexpected type");
}

double share_in(const JsonValue& object, const char* key, double most, const fs::path& file) {
  const auto value = value_of<double>(object, key, file);
  if (value > 0 && value <= most) return value;
  throw model_error(file.string(), ": ", key, " is ", value, ", not above 0 and at most ", most,
                    kAgain);
}

int64_t count_in(const JsonValue& object, const char* key, int64_t least, int64_t most,
                 const fs::path& file) {
  const auto value = object[key].as<int64_t>();
  if (value >= least && value <= most) return *value;
  throw model_error(file.string(), ": ", key, " is ", object[key].text(), ", not an integer from ",
                    least, " to ", most, kAgain);
}

// One file: its SHA-256. Several files: their names matter, too.
std::string sum_of(const std::vector<fs::path>& files) {
  if (files.size() == 1) return sha256_of_file(files.front());
  std::string sums;
  for (const fs::path& file : files)
    sums += concat(sha256_of_file(file), " ", file.filename().string(), "\n");
  return sha256_of(sums);
}

JsonValue parsed(const fs::path& file) {
  if (!path_exists(file, ExitCode::model)) {
    throw model_error(file.string(), ": is missing: the model has no promise", kAgain);
  }
  const MappedFile bytes(file, ExitCode::model);
  JsonValue json;
  if (bytes.text().size() <= kMostBytes) json = JsonValue::parse(bytes.text());
  if (!json.is_object()) throw model_error(file.string(), ": is damaged", kAgain);
  return json;
}

void require_same(const PromisedModel& model, const JsonValue& json, const fs::path& file) {
  const auto require = [&](const char* key, const std::string& now, const char* what) {
    const auto then = value_of<std::string>(json, key, file);
    if (then == now) return;
    throw model_error(file.string(), ": was made for ", what, then.size() > 40 ? "" : then, kAgain);
  };
  require("config_sha256", sha256_of_file(model.config), "another config.json");
  require("weights_sha256", sum_of(model.weights), "other weights");
  require("tokenizer_sha256", sum_of(model.tokenizer), "another tokenizer");
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

void require_automatic(const TaskOptions& options, const EncoderConfig& config) {
  check_unsure("--automatic", problem_type(options), trained_labels(config));
}

void check_promise_output(const fs::path& directory, bool overwrite) {
  const fs::path file = directory / kPromiseFile;
  if (overwrite || !path_exists(file, ExitCode::model)) return;
  throw usage_error(file.string(),
                    ": the model has a promise; --overwrite replaces it (on the same rows a second "
                    "try weakens the confidence)");
}

void write_promise(const PromisedModel& model, const Promise& promise) {
  FINETUNE_CHECK(promise.threshold.has_value());
  const JsonObject json = {{"version", kVersion},
                           {"max_error", promise.wanted.max_error},
                           {"confidence", promise.wanted.confidence},
                           {"threshold", *promise.threshold},
                           {"rows", promise.rows},
                           {"automatic", promise.automatic},
                           {"wrong", promise.wrong},
                           {"answers", model.answers},
                           {"config_sha256", sha256_of_file(model.config)},
                           {"weights_sha256", sum_of(model.weights)},
                           {"tokenizer_sha256", sum_of(model.tokenizer)}};
  write_file(model.directory / kPromiseFile, json.indented(2) + "\n");
}

void remove_promise(const fs::path& directory) {
  const fs::path file = directory / kPromiseFile;
  std::error_code error;
  const bool removed = fs::remove(file, error);
  if (error) throw model_error(file.string(), ": cannot be removed: ", error.message());
  if (removed) warn(file.string(), ": the older promise is removed, since no new one can be made");
}

namespace {

Promise promise_in(const JsonValue& json, const fs::path& file) {
  if (const auto version = value_of<int64_t>(json, "version", file); version != kVersion) {
    throw model_error(file.string(), ": has version ", version, "; this program reads version ",
                      kVersion);
  }
  Promise out;
  out.wanted = {share_in(json, "max_error", 0.5, file), share_in(json, "confidence", 1, file)};
  out.threshold = share_in(json, "threshold", 1, file);
  out.rows = count_in(json, "rows", 1, kMostRows, file);
  out.automatic = count_in(json, "automatic", 1, out.rows, file);
  out.wrong = count_in(json, "wrong", 0, out.automatic, file);
  if (binomial_tail(out.wrong, out.automatic, out.wanted.max_error) > 1 - out.wanted.confidence) {
    throw model_error(file.string(), ": wrong is ", out.wrong, " of ", out.automatic,
                      ", too many for its max_error and confidence", kAgain);
  }
  return out;
}

}  // namespace

Promise read_promise(const PromisedModel& model) {
  const fs::path file = model.directory / kPromiseFile;
  const JsonValue json = parsed(file);
  const Promise out = promise_in(json, file);
  require_same(model, json, file);
  return out;
}

std::optional<Promise> stored_promise(const fs::path& directory) {
  const fs::path file = directory / kPromiseFile;
  if (!path_exists(file, ExitCode::model)) return std::nullopt;
  return promise_in(parsed(file), file);
}

std::string promise_in_words(const Promise& promise) {
  const auto percent = [](double share) { return format_fixed(100 * share, 1) + " %"; };
  const std::string wanted =
      concat("at most ", percent(promise.wanted.max_error), " of automatic labels wrong, with ",
             percent(promise.wanted.confidence), " confidence");
  if (!promise.threshold) return wanted;
  return concat(wanted, ": labels with a probability of at least ", *promise.threshold, ", ",
                percent(double(promise.automatic) / double(promise.rows)), " of ",
                with_thousands(double(promise.rows)), promise.rows == 1 ? " row (" : " rows (",
                with_thousands(double(promise.wrong)), " of ",
                with_thousands(double(promise.automatic)), " wrong)");
}

}  // namespace finetune

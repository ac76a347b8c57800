// Writes and reads drift.json, which has its own checksum.
#include "tasks/classification/drift/drift_file.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.h"
#include "core/files/files.h"
#include "core/sha256.h"
#include "core/text/json_value.h"
#include "core/text/text.h"

namespace finetune {
namespace {

constexpr int kDriftVersion = 1;
constexpr size_t kMostDriftBytes = size_t{8} << 20;

Error damaged_drift(const std::filesystem::path& file, std::string_view what) {
  return model_error(file.string(), ": ", what,
                     "; copy the model directory again, or delete this file: predict then does "
                     "not compare its rows with those of training");
}

bool is_sample(const std::vector<double>& values, size_t size) {
  return values.size() == size && std::is_sorted(values.begin(), values.end()) &&
         std::all_of(values.begin(), values.end(),
                     [](double value) { return std::isfinite(value); });
}

std::string text_of(const std::map<std::string, JsonValue>& members) {
  JsonObject json;
  for (const auto& [name, value] : members) json.add(name, value);
  return json.text();
}

// The checksum is of the text without it.
std::string sum_of(JsonValue json) {
  json.erase("sha256");
  return sha256_of(json.text());
}

StoredDrift drift_in(const JsonValue& json, int64_t labels, int32_t unknown,
                     const std::filesystem::path& file) {
  const auto get = [&](const char* key, auto& out) {
    auto value = json[key].as<std::remove_reference_t<decltype(out)>>();
    if (!value) throw damaged_drift(file, "is damaged: a value is missing or has another type");
    out = *std::move(value);
  };
  int64_t version = 0;
  get("version", version);
  if (version != kDriftVersion) {
    throw damaged_drift(
        file, concat("has version ", version, "; this program reads version ", kDriftVersion));
  }
  StoredDrift out;
  get("answers", out.answers);
  SampleSummary& summary = out.summary;
  get("rows", summary.rows);
  get("distinct", summary.distinct);
  get("labels", summary.labels);
  for (size_t i = 0; i < kTraits; ++i) get(kTraitNames[i], summary.values[i]);
  std::string seen, sum;
  get("seen", seen);
  get("sha256", sum);
  if (sum != sum_of(json)) throw damaged_drift(file, "is damaged: its sha256 is another");
  out.seen = std::make_shared<SeenTokens>(seen, unknown);
  if (int64_t(summary.labels.size()) != labels) {
    throw damaged_drift(file, concat("is of another model: it has ", summary.labels.size(),
                                     " labels, config.json has ", labels));
  }
  const size_t size = summary.values[0].size();
  int64_t labelled = 0;
  for (const int64_t count : summary.labels)
    labelled += std::clamp(count, int64_t{-1}, int64_t(size));
  const bool is_whole =
      !out.seen->is_empty() && size <= RowSample::kMostRows &&
      summary.distinct >= RowSample::kLeastDistinct && summary.distinct <= int64_t(size) &&
      (labels == 0 || labelled == int64_t(size)) &&
      std::all_of(summary.labels.begin(), summary.labels.end(), [](int64_t n) { return n >= 0; }) &&
      std::all_of(summary.values.begin(), summary.values.end(),
                  [&](const auto& values) { return is_sample(values, size); });
  if (!is_whole) throw damaged_drift(file, "is damaged: its samples do not fit together");
  return out;
}

}  // namespace

std::string drift_file_of(const SampleSummary& summary, const SeenTokens& seen,
                          const std::string& answers) {
  std::map<std::string, JsonValue> members = {
      {"version", kDriftVersion},     {"answers", answers},       {"rows", summary.rows},
      {"distinct", summary.distinct}, {"labels", summary.labels}, {"seen", seen.hex()}};
  for (size_t i = 0; i < kTraits; ++i) members[kTraitNames[i]] = summary.values[i];
  members["sha256"] = sha256_of(text_of(members));
  return text_of(members) + "\n";
}

std::optional<StoredDrift> read_drift(const std::filesystem::path& directory, int64_t labels,
                                      int32_t unknown) {
  const std::filesystem::path file = directory / kDriftFile;
  if (directory.empty() || !path_exists(file, ExitCode::model)) return std::nullopt;
  const MappedFile bytes(file, ExitCode::model);
  JsonValue json;
  if (bytes.text().size() <= kMostDriftBytes) json = JsonValue::parse(bytes.text());
  if (!json.is_object()) throw damaged_drift(file, "is damaged: not a JSON object");
  return drift_in(json, labels, unknown, file);
}

}  // namespace finetune

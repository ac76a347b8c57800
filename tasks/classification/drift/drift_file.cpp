// Writes and reads drift.json, which has its own checksum.
#include "tasks/classification/drift/drift_file.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/files.h"
#include "core/sha256.h"
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

// All but the checksum, which is of this text.
nlohmann::json drift_json(const SampleSummary& summary, const std::string& seen,
                          const std::string& answers) {
  nlohmann::json json;
  json["version"] = kDriftVersion;
  json["answers"] = answers;
  json["rows"] = summary.rows;
  json["distinct"] = summary.distinct;
  json["labels"] = summary.labels;
  for (size_t i = 0; i < kTraits; ++i) json[kTraitNames[i]] = summary.values[i];
  json["seen"] = seen;
  return json;
}

// Throws nlohmann's errors, too.
StoredDrift drift_in(const nlohmann::json& json, int64_t labels, int32_t unknown,
                     const std::filesystem::path& file) {
  if (const auto version = json.at("version").get<int64_t>(); version != kDriftVersion) {
    throw damaged_drift(
        file, concat("has version ", version, "; this program reads version ", kDriftVersion));
  }
  StoredDrift out;
  json.at("answers").get_to(out.answers);
  SampleSummary& summary = out.summary;
  json.at("rows").get_to(summary.rows);
  json.at("distinct").get_to(summary.distinct);
  json.at("labels").get_to(summary.labels);
  for (size_t i = 0; i < kTraits; ++i) json.at(kTraitNames[i]).get_to(summary.values[i]);
  const auto seen = json.at("seen").get<std::string>();
  const std::string sum = sha256_of(drift_json(summary, seen, out.answers).dump());
  if (json.at("sha256").get<std::string>() != sum) {
    throw damaged_drift(file, "is damaged: its sha256 is another");
  }
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
  nlohmann::json json = drift_json(summary, seen.hex(), answers);
  json["sha256"] = sha256_of(json.dump());
  return json.dump() + "\n";
}

std::optional<StoredDrift> read_drift(const std::filesystem::path& directory, int64_t labels,
                                      int32_t unknown) {
  const std::filesystem::path file = directory / kDriftFile;
  if (directory.empty() || !path_exists(file, ExitCode::model)) return std::nullopt;
  const MappedFile bytes(file, ExitCode::model);
  nlohmann::json json;
  if (bytes.text().size() <= kMostDriftBytes) {
    json = nlohmann::json::parse(bytes.text(), nullptr, false);
  }
  if (!json.is_object()) throw damaged_drift(file, "is damaged: not a JSON object");
  try {
    return drift_in(json, labels, unknown, file);
  } catch (const nlohmann::json::exception&) {
    throw damaged_drift(file, "is damaged: a value is missing or has another type");
  }
}

}  // namespace finetune

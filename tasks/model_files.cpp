// Reads and copies ngrams.bin, and copies drift.json.
#include "tasks/model_files.h"

#include "core/error.h"
#include "core/files/files.h"
#include "core/files/mapped_file.h"
#include "core/text/json_value.h"
#include "tasks/classification/drift/drift_file.h"
#include "tasks/classification/ngram_mix/ngram_file.h"
#include "tasks/classification/ngram_mix/ngram_mix.h"

namespace finetune {

bool has_ngrams(const std::filesystem::path& directory) {
  return path_exists(directory / kNgramFile, ExitCode::model);
}

std::optional<StoredNgramCounts> ngrams_in(const std::filesystem::path& directory) {
  if (!has_ngrams(directory)) return std::nullopt;
  const std::filesystem::path path = directory / kNgramFile;
  StoredNgramCounts counts{path};
  const MappedFile file(path, ExitCode::model);
  file.read_intact([&] {
    const NgramModel model = read_ngram_file(file.text(), path.string()).model;
    counts.ngrams = int64_t(model.weights().features());
    counts.outputs = model.outputs();
    counts.texts = int64_t(model.index().texts());
  });
  return counts;
}

void copy_ngrams(const std::string& config, const std::filesystem::path& from,
                 const std::filesystem::path& to) {
  const JsonValue json = JsonValue::parse(config);
  const JsonValue& stored = json["finetune"];
  if (!stored.contains("ngram_mix")) return;
  read_ngrams_of(
      from, stored["ngram_mix"]["sha256"].as<std::string>().value_or(""),
      [&](std::string_view bytes, const NgramModel&) { write_file(to / kNgramFile, bytes); });
}

void copy_drift(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (!path_exists(from / kDriftFile, ExitCode::model)) return;
  write_file(to / kDriftFile, read_text_file(from / kDriftFile, ExitCode::model));
}

}  // namespace finetune

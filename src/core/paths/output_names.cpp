// The suffixes of known file formats.
#include "core/paths/output_names.h"

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "core/text/text.h"

namespace finetune {
namespace {

constexpr std::string_view kKnownSuffixes[] = {
    // tables and texts
    ".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".json", ".txt", ".parquet", ".pq", ".feather",
    ".arrow", ".orc", ".avro", ".xlsx", ".xlsm", ".xls", ".ods", ".xml", ".html", ".htm", ".pdf",
    ".md", ".db", ".sqlite", ".sqlite3", ".pkl", ".pickle", ".npy", ".npz", ".dta", ".sav", ".rds",
    ".yaml", ".yml", ".toml", ".docx",
    // models
    ".onnx", ".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".h5", ".hdf5", ".gguf", ".ggml",
    ".tflite", ".pb",
    // archives
    ".gz", ".zst", ".zip", ".tar", ".tgz", ".bz2", ".xz", ".7z"};

std::string_view known_suffix(const std::string& path) {
  for (const std::string_view suffix : kKnownSuffixes) {
    if (path.size() > suffix.size() && ends_with_ignoring_case(path, suffix)) return suffix;
  }
  return {};
}

}  // namespace

void require_output_suffix(std::string_view option, const std::string& path,
                           std::initializer_list<std::string_view> written, std::string_view what) {
  const std::string_view suffix = known_suffix(path);
  if (suffix.empty() || std::find(written.begin(), written.end(), suffix) != written.end()) return;
  throw usage_error(option, " ", path, ": ", what);
}

void require_directory_name(std::string_view option, const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return;
  require_output_suffix(
      option, path, {},
      concat("a directory is written, not a ", known_suffix(path), " file; name a directory"));
}

}  // namespace finetune

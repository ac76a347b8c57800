// Recognises URLs by their scheme, and directories of datasets by their files.
#include "core/files/path_advice.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string>

#include "core/error.h"
#include "core/files/file_kind.h"
#include "core/text/text.h"

namespace finetune {
namespace {

namespace fs = std::filesystem;

std::string advice_for_url(const std::string& path) {
  const size_t colon = path.find("://");
  if (colon == std::string::npos || colon == 0) return "";
  const std::string scheme = path.substr(0, colon);
  const auto is_part = [](unsigned char c) { return std::isalnum(c) || c == '+' || c == '-'; };
  if (!std::all_of(scheme.begin(), scheme.end(), is_part)) return "";
  if (scheme == "file") {
    return concat("is a URL; give the file's path, ", path.substr(colon + 3));
  }
  const char* download = scheme == "s3"   ? "aws s3 cp URL FILE"
                         : scheme == "gs" ? "gcloud storage cp URL FILE"
                         : scheme == "hf" ? "hf download NAME FILE --repo-type dataset"
                                          : "curl -L -o FILE URL";
  return concat("is a URL, and finetune uses no network; download it first: ", download);
}

std::string advice_for_directory(const fs::path& path) {
  std::error_code error;
  const bool has_splits = fs::exists(path / "dataset_dict.json", error);
  if (!has_splits && !fs::exists(path / "state.json", error) &&
      !fs::exists(path / "dataset_info.json", error)) {
    return "";
  }
  return concat(
      "is a directory of datasets' save_to_disk(); write its rows as CSV: python3 -c "
      "\"import datasets; datasets.load_from_disk('",
      path.string(), "')", has_splits ? "['train']" : "", ".to_csv('rows.csv')\"");
}

}  // namespace

void refuse_with_advice(const fs::path& path, ExitCode code) {
  std::error_code error;
  const std::string advice =
      fs::is_directory(path, error) ? advice_for_directory(path) : advice_for_url(path.string());
  if (!advice.empty()) throw Error(code, concat(printable_path(path), ": ", advice));
}

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

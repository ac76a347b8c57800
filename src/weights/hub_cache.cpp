// Finds a model's snapshot in huggingface_hub's layout, and writes advice if it is missing.
#include "weights/hub_cache.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "core/files/directory_replacement.h"
#include "core/files/file_kind.h"
#include "core/files/text_file.h"
#include "core/text/text.h"

namespace finetune {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLongestPart = 96, kLongestRevision = 200;  // bytes of a name's parts
constexpr size_t kLongestReference = 4096;                   // bytes of refs/main
constexpr std::string_view kFolderPrefix = "models--";
// hf download skips files that do not exist; the patterns match the files of WordPiece, byte-level
// BPE and sentencepiece tokenizers.
constexpr std::string_view kFiles =
    " config.json tokenizer.json tokenizer_config.json 'vocab.*' merges.txt '*.model' "
    "model.safetensors";

bool is_letter_or_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

bool is_repository_part(std::string_view part) {
  if (part.empty() || part.size() > kLongestPart) return false;
  if (!is_letter_or_digit(part.front()) || !is_letter_or_digit(part.back())) return false;
  return std::all_of(part.begin(), part.end(),
                     [](char c) { return is_letter_or_digit(c) || c == '-' || c == '.'; });
}

bool is_id(std::string_view id) {
  const std::vector<std::string_view> parts = split(id, '/');
  return parts.size() <= 2 && std::all_of(parts.begin(), parts.end(), is_repository_part) &&
         id.find("--") == id.npos && id.find("..") == id.npos && !id.ends_with(".git");
}

// A git revision, restricted to what a path of the cache can contain.
bool is_revision(std::string_view revision) {
  if (revision.empty() || revision.size() > kLongestRevision) return false;
  const std::vector<std::string_view> parts = split(revision, '/');
  return std::all_of(parts.begin(), parts.end(), [](std::string_view part) {
    return !part.empty() && part.front() != '.' &&
           std::all_of(part.begin(), part.end(), [](char c) {
             return is_letter_or_digit(c) || c == '-' || c == '.' || c == '+';
           });
  });
}

bool is_file_name(std::string_view name) {
  constexpr std::string_view kSuffixes[] = {".safetensors", ".bin",  ".h5",  ".ckpt", ".onnx",
                                            ".gguf",        ".json", ".txt", ".pt",   ".index"};
  return std::any_of(std::begin(kSuffixes), std::end(kSuffixes), [&](std::string_view suffix) {
    return ends_with_ignoring_case(name, suffix);
  });
}

std::optional<std::string> variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value && *value ? std::optional<std::string>(value) : std::nullopt;
}

// Returns $HOME or, like Python, else the home directory in the user database.
std::string home() {
  if (auto given = variable("HOME")) return *given;
  const passwd* const user = ::getpwuid(::getuid());
  return user ? user->pw_dir : "~";
}

// Expands "~" and "~/..." by home(), then $NAME and ${NAME} if set, as Python's expanduser and
// expandvars do.
std::string expanded(std::string path) {
  if (path == "~" || path.starts_with("~/")) path.replace(0, 1, home());
  std::string out;
  for (size_t at = 0; at < path.size();) {
    const size_t dollar = std::min(path.find('$', at), path.size());
    out.append(path, at, dollar - at);
    if (dollar == path.size()) break;
    const bool braces = path.compare(dollar, 2, "${") == 0;
    const size_t begin = dollar + (braces ? 2 : 1);
    size_t end = begin;
    while (end < path.size() && is_letter_or_digit(path[end])) ++end;
    const bool closed = !braces || (end < path.size() && path[end] == '}');
    at = closed && braces ? end + 1 : end;
    const auto value = closed ? variable(path.substr(begin, end - begin)) : std::nullopt;
    out += value.value_or(path.substr(dollar, at - dollar));
  }
  return out;
}

fs::path folder_of(const std::string& id) {
  std::string name(kFolderPrefix);
  for (char c : id) name += c == '/' ? std::string("--") : std::string(1, c);
  return hub_cache() / name;
}

// "models--org--name" -> "org/name"
std::optional<std::string> id_of_folder(const std::string& folder) {
  if (!folder.starts_with(kFolderPrefix)) return std::nullopt;
  std::string id = folder.substr(kFolderPrefix.size());
  if (const size_t at = id.find("--"); at != id.npos) id.replace(at, 2, "/");
  return is_id(id) ? std::optional(id) : std::nullopt;
}

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  for (const fs::path& entry : entries_of(directory)) names.push_back(entry.filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

bool is_snapshot(const fs::path& path) {
  return directory_exists(path, ExitCode::model);
}

std::optional<fs::path> snapshot_of(const HubName& name) {
  const fs::path folder = folder_of(name.id), reference = folder / "refs" / name.revision;
  std::string commit = name.revision;
  if (kind_of(reference, ExitCode::model) == FileKind::file) {
    commit = trim(read_beginning(reference, kLongestReference));
  }
  if (!is_revision(commit) || commit.find('/') != commit.npos) return std::nullopt;
  const fs::path snapshot = folder / "snapshots" / commit;
  return is_snapshot(snapshot) ? std::optional(snapshot) : std::nullopt;
}

std::string fetching(const HubName& name) {
  return concat("hf download ", name.id,
                name.revision == "main" ? "" : concat(" --revision ", name.revision), kFiles);
}

// Ids in the cache with the same last part: bert-base-uncased and google-bert/bert-base-uncased.
std::vector<std::string> namesakes(const std::string& id) {
  const std::string last(split(id, '/').back());
  std::vector<std::string> found;
  for (const std::string& folder : names_in(hub_cache())) {
    const auto other = id_of_folder(folder);
    if (other && *other != id && split(*other, '/').back() == last) found.push_back(*other);
  }
  return found;
}

}  // namespace

std::optional<HubName> hub_name(std::string_view text) {
  const size_t at = text.find('@');
  const std::string_view id = text.substr(0, at);
  const std::string_view revision = at == text.npos ? "main" : text.substr(at + 1);
  if (!is_id(id) || !is_revision(revision) || is_file_name(id)) return std::nullopt;
  return HubName{std::string(id), std::string(revision)};
}

fs::path hub_cache() {
  std::string cache;
  if (const auto hub = variable("HF_HUB_CACHE")) {
    cache = expanded(*hub);
  } else if (const auto older = variable("HUGGINGFACE_HUB_CACHE")) {
    cache = expanded(*older);
  } else {
    const std::string caches = variable("XDG_CACHE_HOME").value_or(concat(home(), "/.cache"));
    cache = expanded(variable("HF_HOME").value_or(caches + "/huggingface")) + "/hub";
  }
  return fs::absolute(cache).lexically_normal();
}

std::string model_path(const std::string& given) {
  const std::optional<HubName> name = hub_name(given);
  if (!name || path_exists(given, ExitCode::model)) return given;
  const std::optional<fs::path> snapshot = snapshot_of(*name);
  return snapshot ? snapshot->string() : given;
}

std::string existing_model_path(const std::string& given) {
  std::string path = model_path(given);
  if (!path_exists(path, ExitCode::model)) throw absent_model(path);
  return path;
}

Error absent_model(const fs::path& given) {
  if (const std::optional<HubName> origin =
          hub_origin(given)) {  // such as a config.toml from another machine
    return model_error(given.string(), ": no such directory; --model ", origin->id, "@",
                       origin->revision, " is the same model in this machine's cache (",
                       hub_cache().string(), "), and this fetches it there: ", fetching(*origin));
  }
  const std::optional<HubName> name = hub_name(given.string());
  if (!name) {
    return model_error(given.string(),
                       ": no such directory or file; a model is a directory with config.json, a "
                       "vocabulary and weights");
  }
  const std::string absent =
      concat(given.string(), ": no such directory or file, and the Hugging Face cache (",
             hub_cache().string(), ") ");
  const std::vector<std::string> snapshots = names_in(folder_of(name->id) / "snapshots");
  if (!snapshots.empty()) {
    return model_error(absent, "has only revision ", name->id, "@", join_some(snapshots, 3),
                       "; give that, or fetch it: ", fetching(*name));
  }
  if (const std::vector<std::string> others = namesakes(name->id); !others.empty()) {
    return model_error(absent, "does not have it, but ", join_some(others, 3),
                       "; give that, or fetch it: ", fetching(*name));
  }
  return model_error(
      absent, "does not have it; if it is a model of the hub, this fetches it: ", fetching(*name));
}

std::optional<HubName> hub_origin(const fs::path& directory) {
  const fs::path path = fs::absolute(directory / "").lexically_normal().parent_path();
  if (path.parent_path().filename() != "snapshots") return std::nullopt;
  const auto id = id_of_folder(path.parent_path().parent_path().filename().string());
  return id ? std::optional(HubName{*id, path.filename().string()}) : std::nullopt;
}

std::string hub_advice(const fs::path& directory) {
  const std::optional<HubName> origin = hub_origin(directory);
  if (!origin) return "";
  return concat("; the Hugging Face cache lacks files of ", origin->id,
                ", this fetches it: ", fetching(*origin),
                " (or 'pytorch_model*', if there is no model.safetensors)");
}

}  // namespace finetune

// Finds the prefix that a wrapper added to the names of a model's tensors.
#include "weights/name_prefix.h"

#include <algorithm>
#include <set>

#include "core/error.h"
#include "core/text/text.h"

namespace finetune {
namespace {

constexpr size_t kNamesShown = 3, kLongestShown = 80;

// Attributes in which wrappers and training scripts hold a whole model.
constexpr std::string_view kWrappers[] = {"_forward_module", "_orig_mod",  "auto_model", "backbone",
                                          "base_model",      "bert_model", "encoder",    "model",
                                          "module",          "net",        "network",    "student",
                                          "text_encoder",    "transformer"};

// Modules that FSDP and activation checkpointing put around others, anywhere in a name.
constexpr std::string_view kInnerWrappers[] = {"_fsdp_wrapped_module.",
                                               "_checkpoint_wrapped_module."};

// Encoders whose weights have other meanings, even where the names behind the prefix are equal.
constexpr std::string_view kOtherEncoders[] = {
    "albert",  "bert",       "camembert", "convbert", "data2vec_text", "deberta",    "distilbert",
    "electra", "ernie",      "esm",       "flaubert", "layoutlm",      "longformer", "mpnet",
    "nezha",   "nomic_bert", "rembert",   "roberta",  "roformer",      "xlm_roberta"};

// Modules of torch.nn.Sequential are named by numbers.
bool is_number(std::string_view part) {
  return !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
}

// `base`: the architecture's own name, which a script may also have used for the whole model. The
// first code for nomic_bert has its encoder in `bert`.
bool is_wrapper(std::string_view part, std::string_view base) {
  return part == base || (base == "nomic_bert" && part == "bert") || is_number(part) ||
         std::find(std::begin(kWrappers), std::end(kWrappers), part) != std::end(kWrappers);
}

bool is_of_wrappers(std::string_view prefix, std::string_view base_prefix) {
  const std::string_view base = base_prefix.substr(0, base_prefix.size() - 1);
  prefix.remove_suffix(1);
  for (std::string_view part : split(prefix, '.')) {
    if (!is_wrapper(part, base)) return false;
  }
  return true;
}

// Whether every name begins with the prefix, and the prefix does not name another encoder. If so,
// all names fit the model once the prefix is removed.
bool is_of_all(std::string_view prefix, std::string_view base_prefix,
               const std::vector<std::string>& stored) {
  const std::string_view modules = prefix.substr(0, prefix.size() - 1);
  const std::string_view last = modules.substr(modules.rfind('.') + 1);
  const bool is_other = std::find(std::begin(kOtherEncoders), std::end(kOtherEncoders), last) !=
                        std::end(kOtherEncoders);
  if (is_other && concat(last, ".") != base_prefix) return false;
  return std::all_of(stored.begin(), stored.end(),
                     [&](const std::string& name) { return name.starts_with(prefix); });
}

// Removes `ending` from the end of `name` if it is the whole name or follows a dot.
bool take_ending(std::string_view& name, std::string_view ending) {
  if (!name.ends_with(ending)) return false;
  const std::string_view before = name.substr(0, name.size() - ending.size());
  if (!before.empty() && !before.ends_with('.')) return false;
  name = before;
  return true;
}

// The prefixes of all word embeddings in the file.
std::set<std::string_view> prefixes_of_models(const std::vector<std::string>& stored,
                                              const TensorNames& names) {
  std::set<std::string_view> prefixes;
  for (std::string_view name : stored) {
    if (!take_ending(name, names.word_embedding)) continue;
    take_ending(name, names.base_prefix);
    prefixes.insert(name);
  }
  return prefixes;
}

std::string some_quoted(const auto& names) {
  std::vector<std::string> quoted;
  for (std::string_view name : names) {
    if (quoted.size() > kNamesShown) break;  // one more than shown: there are more
    quoted.push_back(in_quotes(name, kLongestShown));
  }
  return join_some(quoted, kNamesShown);
}

// The prefix of a file without a word embedding. No encoder has a module of these two names.
NamePrefix before_some_name(const std::vector<std::string>& stored) {
  for (std::string_view wrapper : {"module.", "_orig_mod."}) {
    for (const std::string& name : stored) {
      if (name.starts_with(wrapper)) return {std::string(wrapper), ""};
    }
  }
  return {};
}

}  // namespace

std::string without_inner_wrappers(std::string name) {
  for (std::string_view wrapper : kInnerWrappers) {
    for (size_t at = name.find(wrapper); at != std::string::npos; at = name.find(wrapper, at)) {
      name.erase(at, wrapper.size());
    }
  }
  return name;
}

NamePrefix find_name_prefix(const std::vector<std::string>& stored, const TensorNames& names) {
  if (names.base_prefix.empty()) return before_some_name(stored);
  const std::string needed = concat(names.base_prefix, names.word_embedding);
  const std::set<std::string_view> prefixes = prefixes_of_models(stored, names);
  if (prefixes.contains("")) return {};
  if (prefixes.empty()) {
    NamePrefix found = before_some_name(stored);
    found.advice = concat("no tensor is a word embedding (", in_quotes(needed), "); it holds ",
                          stored.empty() ? "none" : some_quoted(stored));
    return found;
  }
  if (prefixes.size() > 1) {
    return {"", concat("it holds ", prefixes.size(), " models, whose names begin with ",
                       some_quoted(prefixes), "; save one of them alone")};
  }
  const std::string prefix(*prefixes.begin());
  if (is_of_wrappers(prefix, names.base_prefix)) return {prefix, ""};
  if (is_of_all(prefix, names.base_prefix, stored)) return {prefix, ""};
  return {"", concat("its names begin with ", in_quotes(prefix, kLongestShown), ", where ",
                     in_quotes(needed),
                     " is expected; save it without that prefix (in Python: "
                     "{k.removeprefix(prefix): v for k, v in state_dict.items()})")};
}

}  // namespace finetune

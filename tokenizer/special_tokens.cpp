// Reads special and added tokens from tokenizer_config.json and its companions.
#include "tokenizer/special_tokens.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/error.h"
#include "core/files/file_kind.h"
#include "core/text/text.h"

namespace finetune {
namespace {

namespace fs = std::filesystem;
using Array = simdjson::dom::array;
using Element = simdjson::dom::element;
using Object = simdjson::dom::object;

struct NamedToken : AddedToken {
  bool stated = false;               // named in a file; false: BERT's default name
  bool described_in_config = false;  // described by an object in tokenizer_config.json
};

NamedToken special_token(std::string_view name) {
  NamedToken token;
  token.content = std::string(name);
  token.normalized = false;
  token.special = true;
  return token;
}

// Reads a token in a configuration file: a string or an object.
NamedToken read_special_token(const JsonFile& file, const char* key, Element value) {
  Object object;
  std::string_view name;
  if (value.get(name) == simdjson::SUCCESS) return special_token(name);
  if (value.get(object)) {
    throw model_error(file.path().string(), ": \"", key, "\" has an unexpected value (",
                      in_quotes(simdjson::minify(value)), ")");
  }
  NamedToken token = {read_added_token(file, object)};
  if (object.at_key("normalized").error()) token.normalized = false;
  token.special = true;
  return token;
}

bool is_null(const JsonFile& file, const char* key) {
  return !file.root().at_key(key).error() && !JsonFile::find(file.root(), key);
}

// The names of special tokens; files read later override earlier ones.
class NamedTokens {
 public:
  explicit NamedTokens(const SpecialNames& own)
      : own_(own), roles_{{"bos_token", ""},       {"eos_token", ""},      {"unk_token", own.unk},
                          {"sep_token", own.sep},  {"pad_token", own.pad}, {"cls_token", own.cls},
                          {"mask_token", own.mask}} {
    for (Role& role : roles_) set_class_flags(role);
    if (roles_[6].token) roles_[6].token->stated = own.mask_named;
  }
  void read(const JsonFile& file, bool is_config) {
    const auto read_token = [&](const char* key, Element value) {
      NamedToken token = read_special_token(file, key, value);
      token.stated = true;
      token.described_in_config = is_config && value.is_object();
      return token;
    };
    for (Role& role : roles_) {
      if (is_null(file, role.key)) role.token.reset();  // null: the model has no such token
      if (auto value = JsonFile::find(file.root(), role.key)) {
        role.token = read_token(role.key, *value);
        if (value->is_string()) set_class_flags(role);
        // a vocabulary may contain an empty line
        if (role.token->content.empty()) role.token.reset();
      }
    }
    constexpr const char* kAdditional = "additional_special_tokens";
    if (is_null(file, kAdditional)) additional_.clear();
    if (auto list = file.get<Array>(file.root(), kAdditional)) {
      for (Element value : *list) additional_.push_back(read_token(kAdditional, value));
    }
  }

  // All named tokens. If two have equal content, the caller uses the first.
  std::vector<NamedToken> all() const {
    std::vector<NamedToken> out;
    for (const Role& role : roles_) {
      if (role.token) out.push_back(*role.token);
    }
    out.insert(out.end(), additional_.begin(), additional_.end());
    return out;
  }
  std::string name(std::string_view key) const {
    for (const Role& role : roles_) {
      if (role.key == key) return role.token ? role.token->content : role.own;
    }
    return {};
  }

 private:
  struct Role {
    const char* key;
    std::string own;  // the name if no file states one; "": none
    std::optional<NamedToken> token =
        own.empty() ? std::nullopt : std::optional(special_token(own));
  };
  // If a file states only the name of the mask or unknown token, its class's flags apply.
  void set_class_flags(Role& role) const {
    if (&role == &roles_[2] && role.token) role.token->normalized = own_.unk_normalized;
    if (&role != &roles_[6] || !role.token) return;
    role.token->lstrip = own_.mask_lstrip;
    role.token->normalized = own_.mask_normalized;
  }

  SpecialNames own_;
  Role roles_[7];
  std::vector<NamedToken> additional_;
};

// The definition's added tokens, each content once.
class AddedTokens {
 public:
  explicit AddedTokens(TokenizerDefinition& definition) : definition_(definition) {
    for (const AddedToken& token : definition.added) contents_.insert(token.content);
  }
  // Does nothing if the content is empty or already there.
  void add(AddedToken token, int64_t id, const fs::path& path) {
    if (contents_.insert(token.content).second) {
      add_token(definition_, std::move(token), id, path);
    }
  }
  void add_from_vocabulary(AddedToken token) {
    token.id = definition_.vocabulary.find(token.content);
    if (token.id >= 0 && contents_.insert(token.content).second) {
      definition_.added.push_back(std::move(token));
    }
  }

 private:
  TokenizerDefinition& definition_;
  std::unordered_set<std::string> contents_;
};

void read_added_tokens(const JsonFile& file, const std::vector<NamedToken>& named,
                       AddedTokens& added) {
  // As in from_pretrained, a token is special only if a file names it and tokenizer_config.json
  // does not describe it by an object.
  std::unordered_set<std::string> special;
  for (const NamedToken& token : named) {
    if (token.stated && !token.described_in_config) special.insert(token.content);
  }
  for (auto [content, value] : file.root()) {
    int64_t id = -1;
    if (value.get(id)) id = -1;
    AddedToken token;
    token.content = std::string(content);
    token.special = special.contains(token.content);
    token.normalized = !token.special;
    added.add(std::move(token), id, file.path());
  }
}

}  // namespace

int32_t checked_id(const fs::path& path, std::string_view piece, int64_t id) {
  if (id < 0 || id >= kMostTokens) {
    throw model_error(path.string(), ": token ", in_quotes(piece), " has the impossible id ", id,
                      "; ids are from 0 to ", kMostTokens - 1);
  }
  return int32_t(id);
}

AddedToken read_added_token(const JsonFile& file, const Object& object) {
  AddedToken token;
  token.content = std::string(file.get<std::string_view>(object, "content").value_or(""));
  token.single_word = file.get<bool>(object, "single_word").value_or(false);
  token.lstrip = file.get<bool>(object, "lstrip").value_or(false);
  token.rstrip = file.get<bool>(object, "rstrip").value_or(false);
  token.special = file.get<bool>(object, "special").value_or(false);
  token.normalized = file.get<bool>(object, "normalized").value_or(!token.special);
  return token;
}

bool read_added_tokens_decoder(const JsonFile& config,
                               const std::function<void(AddedToken, int64_t)>& add) {
  auto decoder = config.get<Object>(config.root(), "added_tokens_decoder");
  if (!decoder) return false;
  for (auto [key, value] : *decoder) {
    Object object;
    std::optional<int64_t> id = parse_int(key);
    if (!id || value.get(object)) {
      throw model_error(config.path().string(), ": added_tokens_decoder has a bad entry ",
                        in_quotes(key));
    }
    add(read_added_token(config, object), *id);
  }
  return true;
}

void add_token(TokenizerDefinition& definition, AddedToken token, int64_t id,
               const fs::path& path) {
  if (token.content.empty()) return;
  Vocabulary& vocabulary = definition.vocabulary;
  int32_t known = vocabulary.find(token.content);
  if (known < 0 && !vocabulary.piece(checked_id(path, token.content, id)).empty()) {
    id = vocabulary.size();
  }
  token.id = known >= 0 ? known : checked_id(path, token.content, id);
  if (known < 0) vocabulary.add(token.content, token.id);
  token.of_model = known >= 0;
  definition.added.push_back(std::move(token));
}

SpecialNames add_configured_tokens(const fs::path& directory, const JsonFile* config,
                                   TokenizerDefinition& definition, const SpecialNames& own) {
  NamedTokens names(own);
  AddedTokens added(definition);
  bool decoded = false, has_own_names = true;
  if (config) {
    names.read(*config, true);
    decoded = read_added_tokens_decoder(*config, [&](AddedToken token, int64_t id) {
      added.add(std::move(token), id, config->path());
    });
    const auto tokenizer_class = config->get<std::string_view>(config->root(), "tokenizer_class");
    has_own_names = tokenizer_class.value_or("") != "PreTrainedTokenizerFast";
  }
  if (fs::path path = directory / "special_tokens_map.json";
      !decoded && path_exists(path, ExitCode::model)) {
    names.read(JsonFile(path), false);
  }
  const std::vector<NamedToken> all = names.all();
  if (fs::path path = directory / "added_tokens.json";
      !decoded && path_exists(path, ExitCode::model)) {
    read_added_tokens(JsonFile(path), all, added);
  }
  definition.vocabulary.finish();
  for (const NamedToken& token : all) {
    if (token.stated || has_own_names) added.add_from_vocabulary(token);
  }
  return {names.name("unk_token"), names.name("sep_token"), names.name("pad_token"),
          names.name("cls_token"), names.name("mask_token")};
}

SpecialNames own_names(const TokenizerDefinition& definition) {
  const bool roberta = definition.vocabulary.find("<s>") >= 0;
  return roberta ? SpecialNames{"<unk>", "</s>", "<pad>", "<s>", "<mask>", true} : SpecialNames{};
}

namespace {

// The number of entries in the model's vocabulary. Two entries may share an id.
int64_t size_of_model(const JsonFile& file) {
  const auto model = file.get<Object>(file.root(), "model");
  const auto vocabulary = model ? JsonFile::find(*model, "vocab") : std::nullopt;
  Array list;
  Object object;
  if (vocabulary && !vocabulary->get(list)) return int64_t(list.size());
  return vocabulary && !vocabulary->get(object) ? int64_t(object.size()) : 0;
}

}  // namespace

void add_listed_tokens(const JsonFile& file, TokenizerDefinition& definition) {
  const auto added = file.get<Array>(file.root(), "added_tokens");
  if (!added) return;
  std::unordered_map<std::string, size_t> places;  // in definition.added
  int64_t next = size_of_model(file);
  for (Element element : *added) {
    Object object;
    if (element.get(object)) {
      throw model_error(file.path().string(), ": added_tokens holds something other than objects");
    }
    AddedToken token = read_added_token(file, object);
    if (token.content.empty()) continue;
    checked_id(file.path(), token.content, file.get<int64_t>(object, "id").value_or(-1));
    const auto [at, is_new] = places.emplace(token.content, definition.added.size());
    AddedToken& kept = is_new ? definition.added.emplace_back() : definition.added[at->second];
    token.id = is_new ? definition.vocabulary.find(token.content) : kept.id;
    token.of_model = is_new ? token.id >= 0 : kept.of_model;
    if (token.id < 0) {
      token.id = checked_id(file.path(), token.content, next);
      definition.vocabulary.add(token.content, token.id);
    }
    next = std::max(next, int64_t(token.id) + 1);
    kept = std::move(token);
  }
  definition.vocabulary.finish();
}

// Null if the file does not exist.
std::unique_ptr<const JsonFile> open_tokenizer_config(const fs::path& directory) {
  const fs::path path = directory / "tokenizer_config.json";
  if (!path_exists(path, ExitCode::model)) return nullptr;
  return std::make_unique<const JsonFile>(path);
}

StatedInputs read_stated_inputs(const JsonFile& config) {
  StatedInputs stated;
  double length = 0;  // Hugging Face writes 1e30 for "no limit"
  const auto most = JsonFile::find(config.root(), "model_max_length");
  if (most && !most->get(length) && length >= 1 && length <= 1e9) {
    stated.model_max_length = int64_t(length);
  }
  const auto side = config.get<std::string_view>(config.root(), "truncation_side");
  stated.cuts_left = side == "left";
  const auto names = config.get<Array>(config.root(), "model_input_names");
  if (!names) return stated;
  stated.token_types = false;
  for (const Element name : *names) {
    std::string_view text;
    if (!name.get(text) && text == "token_type_ids") stated.token_types = true;
  }
  return stated;
}

std::vector<fs::path> present_files(const fs::path& directory,
                                    std::initializer_list<const char*> names) {
  std::vector<fs::path> out;
  for (const char* name : names) {
    if (path_exists(directory / name, ExitCode::model)) out.push_back(directory / name);
  }
  return out;
}

int32_t require_token(const TokenizerDefinition& definition, const fs::path& path,
                      std::string_view what, std::string_view token) {
  int32_t id = definition.vocabulary.find(token);
  if (id < 0) {
    throw model_error(path.string(), ": the vocabulary has no ", what, " token ", in_quotes(token));
  }
  return id;
}

}  // namespace finetune

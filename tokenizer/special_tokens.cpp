#include "tokenizer/special_tokens.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "core/error.h"
#include "core/text.h"

namespace finetune {
namespace {

namespace fs = std::filesystem;
using Array = simdjson::dom::array;
using Element = simdjson::dom::element;
using Object = simdjson::dom::object;

constexpr int64_t kLargestId = 1 << 28;

struct NamedToken : AddedToken {
  bool described = false;  // by an object
  bool in_config = false;  // tokenizer_config.json
};

NamedToken special_token(std::string_view name) {
  NamedToken token;
  token.content = std::string(name);
  token.normalized = false;
  token.special = true;
  return token;
}

// A token in a configuration file: a string or an object.
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

template <typename Token>
Token* find(std::vector<Token>& tokens, std::string_view content) {
  const auto same = [&](const Token& token) { return token.content == content; };
  const auto found = std::find_if(tokens.begin(), tokens.end(), same);
  return found == tokens.end() ? nullptr : &*found;
}

struct NamedTokens {
  NamedToken unk = special_token("[UNK]"), sep = special_token("[SEP]");
  NamedToken pad = special_token("[PAD]"), cls = special_token("[CLS]");
  std::optional<NamedToken> mask = special_token("[MASK]");
  std::vector<NamedToken> additional;

  void read(const JsonFile& file, bool is_config) {
    const auto read_token = [&](const char* key, Element value) {
      NamedToken token = read_special_token(file, key, value);
      token.described = value.is_object();
      token.in_config = is_config;
      return token;
    };
    const auto read_one = [&](const char* key, auto& token) {
      if (auto value = JsonFile::find(file.root(), key)) {
        token = read_token(key, *value);
      }
    };
    read_one("unk_token", unk);
    read_one("sep_token", sep);
    read_one("pad_token", pad);
    read_one("cls_token", cls);
    if (!file.root().at_key("mask_token").error()) mask.reset();  // null: there is none
    read_one("mask_token", mask);
    constexpr const char* kAdditional = "additional_special_tokens";
    if (auto list = file.get<Array>(file.root(), kAdditional)) {
      for (Element value : *list) {
        NamedToken token = read_token(kAdditional, value);
        NamedToken* const before = find(additional, token.content);
        if (!before) {
          additional.push_back(std::move(token));
        } else if (before->described) {  // a name alone counts more
          *before = std::move(token);
        }
      }
    }
  }

  // Of one content the first one counts.
  std::vector<NamedToken> all() const {
    std::vector<NamedToken> out = {unk, sep, pad, cls};
    if (mask) out.push_back(*mask);
    out.insert(out.end(), additional.begin(), additional.end());
    return out;
  }
};

// The numbered tokens of tokenizer_config.json. False: it has none.
bool read_added_tokens_decoder(const JsonFile& config, WordPieceDefinition& definition) {
  auto decoder = config.get<Object>(config.root(), "added_tokens_decoder");
  if (!decoder) return false;
  for (auto [key, value] : *decoder) {
    Object object;
    std::optional<int64_t> id = parse_int(key);
    if (!id || value.get(object)) {
      throw model_error(config.path().string(), ": added_tokens_decoder has a bad entry ",
                        in_quotes(key));
    }
    AddedToken token = read_added_token(config, object);
    if (AddedToken* const known = find(definition.added, token.content)) {
      token.id = known->id;
      token.normalized = known->normalized;
      *known = std::move(token);
    } else {
      add_token(definition, std::move(token), *id, config.path());
    }
  }
  return true;
}

void read_added_tokens(const JsonFile& file, const std::vector<NamedToken>& special,
                       WordPieceDefinition& definition) {
  for (auto [content, value] : file.root()) {
    if (find(definition.added, content)) continue;
    int64_t id = -1;
    if (value.get(id)) id = -1;
    AddedToken token;
    token.content = std::string(content);
    // A description in tokenizer_config.json does not make it one, as from_pretrained has it.
    token.special = std::any_of(special.begin(), special.end(), [&](const NamedToken& named) {
      return named.content == content && !(named.described && named.in_config);
    });
    token.normalized = !token.special;
    add_token(definition, std::move(token), id, file.path());
  }
}

}  // namespace

int32_t checked_id(const fs::path& path, std::string_view piece, int64_t id) {
  if (id < 0 || id > kLargestId) {
    throw model_error(path.string(), ": token ", in_quotes(piece), " has the impossible id ", id);
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

void add_token(WordPieceDefinition& definition, AddedToken token, int64_t id,
               const fs::path& path) {
  if (token.content.empty()) return;
  int32_t known = definition.vocabulary.find(token.content);
  token.id = known >= 0 ? known : checked_id(path, token.content, id);
  if (known < 0) definition.vocabulary.add(token.content, token.id);
  definition.added.push_back(std::move(token));
}

SpecialNames add_configured_tokens(const fs::path& directory, WordPieceDefinition& definition) {
  NamedTokens tokens;
  bool decoded = false;
  if (fs::path path = directory / "tokenizer_config.json"; fs::exists(path)) {
    const JsonFile config(path);
    tokens.read(config, true);
    decoded = read_added_tokens_decoder(config, definition);
  }
  if (fs::path path = directory / "special_tokens_map.json"; !decoded && fs::exists(path)) {
    tokens.read(JsonFile(path), false);
  }
  if (fs::path path = directory / "added_tokens.json"; !decoded && fs::exists(path)) {
    read_added_tokens(JsonFile(path), tokens.all(), definition);
  }
  definition.vocabulary.finish();
  for (NamedToken& token : tokens.all()) {
    token.id = definition.vocabulary.find(token.content);
    if (token.id < 0) continue;  // nor would it have an embedding
    if (!find(definition.added, token.content)) definition.added.push_back(token);
  }
  return {tokens.unk.content, tokens.sep.content, tokens.pad.content, tokens.cls.content};
}

}  // namespace finetune

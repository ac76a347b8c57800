// Special tokens named by the configuration files of a model directory: tokenizer_config.json and,
// if that has no added_tokens_decoder, special_tokens_map.json and added_tokens.json. The rules are
// those of from_pretrained in transformers 4 for BertTokenizerFast (tokenization_utils_base.py). If
// a token is described twice with different flags, the first description counts; in transformers
// that depends on the code path.
#pragma once

#include <filesystem>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "tokenizer/json_file.h"
#include "tokenizer/tokenizer_definition.h"

namespace finetune {

struct SpecialNames {
  std::string unk = "[UNK]", sep = "[SEP]", pad = "[PAD]", cls = "[CLS]", mask = "[MASK]";
  bool mask_lstrip = false;      // the mask includes the white space before it
  bool mask_normalized = false;  // the mask is matched in normalized text
  bool unk_normalized = false;
  bool mask_named = false;  // the mask is special as if a file named it
};

// Reads an object with "content" and flags.
AddedToken read_added_token(const JsonFile& file, const simdjson::dom::object& object);

// Reads the numbered tokens of tokenizer_config.json, in its order. Returns false if it has no such
// list.
bool read_added_tokens_decoder(const JsonFile& config,
                               const std::function<void(AddedToken, int64_t id)>& add);

// Adds a token. If the vocabulary has an id for it, it keeps that id; if `id` is another token's,
// it gets the next free one. Error(model) for an invalid `id`.
void add_token(TokenizerDefinition& definition, AddedToken token, int64_t id,
               const std::filesystem::path& path);

int32_t checked_id(const std::filesystem::path& path, std::string_view piece, int64_t id);

// Adds the tokens of `config` (tokenizer_config.json; may be null) and of the other files in
// `directory` to `definition`, then the special tokens that its vocabulary contains. `own` names
// the special tokens that no file states.
SpecialNames add_configured_tokens(const std::filesystem::path& directory, const JsonFile* config,
                                   TokenizerDefinition& definition, const SpecialNames& own = {});

// The names that no file states: RoBERTa's if the vocabulary has <s>, else BERT's.
SpecialNames own_names(const TokenizerDefinition& definition);

// Reads "added_tokens" of tokenizer.json as tokenizers 0.23 does: a token that the model's
// vocabulary lacks gets the next free id, whatever id the file states. If a token is described
// several times, the last description counts.
void add_listed_tokens(const JsonFile& file, TokenizerDefinition& definition);

// Opens tokenizer_config.json in a directory; null if absent. Then: reads what it says on inputs.
std::unique_ptr<const JsonFile> open_tokenizer_config(const std::filesystem::path& directory);
StatedInputs read_stated_inputs(const JsonFile& config);

// The files of `names` that are in `directory`.
std::vector<std::filesystem::path> present_files(const std::filesystem::path& directory,
                                                 std::initializer_list<const char*> names);

// Returns the id of a token that the model needs. Error(model) if the vocabulary does not have it.
int32_t require_token(const TokenizerDefinition& definition, const std::filesystem::path& path,
                      std::string_view what, std::string_view token);

}  // namespace finetune

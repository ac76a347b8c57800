// Special tokens that the configuration files of a model directory name.
// From tokenizer_config.json, and where that has no added_tokens_decoder special_tokens_map.json
// and added_tokens.json. As from_pretrained of transformers 4 has them for BertTokenizerFast
// (tokenization_utils_base.py). Of a token that is described twice with different flags the first
// description counts; there it hangs on the way it came.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "tokenizer/json_file.h"
#include "tokenizer/wordpiece/wordpiece_tokenizer.h"

namespace finetune {

struct SpecialNames {
  std::string unk = "[UNK]", sep = "[SEP]", pad = "[PAD]", cls = "[CLS]", mask = "[MASK]";
};

// An object of "content" and flags.
AddedToken read_added_token(const JsonFile& file, const simdjson::dom::object& object);

// The numbered tokens of tokenizer_config.json, in its order. False: it has no list of them.
bool read_added_tokens_decoder(const JsonFile& config,
                               const std::function<void(AddedToken, int64_t id)>& add);

// An added token keeps the id that the vocabulary has for it. Error(model): an impossible `id`.
void add_token(WordPieceDefinition& definition, AddedToken token, int64_t id,
               const std::filesystem::path& path);

int32_t checked_id(const std::filesystem::path& path, std::string_view piece, int64_t id);

// Adds the tokens of `config` (tokenizer_config.json; null: there is none) and of the other files
// in `directory` to those that `definition` has, then its special tokens, as far as the vocabulary
// has them.
SpecialNames add_configured_tokens(const std::filesystem::path& directory, const JsonFile* config,
                                   WordPieceDefinition& definition);

}  // namespace finetune

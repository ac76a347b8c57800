// Special tokens named by the configuration files of a model directory: tokenizer_config.json and,
// if that has no added_tokens_decoder, special_tokens_map.json and added_tokens.json. The rules are
// those of from_pretrained in transformers 4 for BertTokenizerFast (tokenization_utils_base.py). If
// a token is described twice with different flags, the first description counts; in transformers
// that depends on the code path.
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

// Reads an object with "content" and flags.
AddedToken read_added_token(const JsonFile& file, const simdjson::dom::object& object);

// Reads the numbered tokens of tokenizer_config.json, in its order. Returns false if it has no such
// list.
bool read_added_tokens_decoder(const JsonFile& config,
                               const std::function<void(AddedToken, int64_t id)>& add);

// Adds a token; if the vocabulary has an id for it, it keeps that id. Error(model) for an invalid
// `id`.
void add_token(WordPieceDefinition& definition, AddedToken token, int64_t id,
               const std::filesystem::path& path);

int32_t checked_id(const std::filesystem::path& path, std::string_view piece, int64_t id);

// Adds the tokens of `config` (tokenizer_config.json; may be null) and of the other files in
// `directory` to `definition`, then the special tokens that its vocabulary contains.
SpecialNames add_configured_tokens(const std::filesystem::path& directory, const JsonFile* config,
                                   WordPieceDefinition& definition);

}  // namespace finetune

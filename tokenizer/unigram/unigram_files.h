// Reads the Unigram vocabulary of a model directory: tokenizer.json, or a sentencepiece model that
// a Unigram tokenizer class of transformers uses.
#pragma once

#include "tokenizer/json_file.h"
#include "tokenizer/unigram/unigram_tokenizer.h"

namespace finetune {

// Reads a tokenizer.json whose model is Unigram.
UnigramDefinition read_unigram_tokenizer_json(const JsonFile& file);

// How a tokenizer class numbers the pieces of its sentencepiece model. albert, deberta: as stored,
// but text goes through the steps of the tokenizer.json that transformers converts it to.
enum class PieceIds { as_stored, albert, deberta, xlm_roberta, camembert };
// Decides by config.json's model_type if that is ALBERT's or DeBERTa's; else by tokenizer_class in
// tokenizer_config.json or config.json; else by model_type.
PieceIds piece_ids_of(const std::filesystem::path& directory);
// The same for a sentencepiece model. If the directory does not tell, spm.model means DeBERTa.
PieceIds piece_ids_of_model(const std::filesystem::path& path);

// "add_prefix_space" of tokenizer_config.json, for the classes of these `ids`, as in transformers
// 5: with false, words end at white space and no mark is put before them; DeBERTa's still get one
// at the beginning of the text. `config` may be null.
void apply_prefix_option(const JsonFile* config, PieceIds ids, UnigramDefinition& definition);

// Reads the sentencepiece model at `path` with tokenizer_config.json, special_tokens_map.json and
// added_tokens.json beside it, if they exist. Text goes through the steps of the tokenizer.json
// that transformers 4.57 writes for it.
UnigramDefinition read_shifted_sentencepiece(const std::filesystem::path& path, PieceIds ids);

// All throw Error(model) that names the file.

}  // namespace finetune

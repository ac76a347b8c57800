// Unigram vocabularies of a model directory: tokenizer.json, or a sentencepiece model whose ids
// fairseq shifted.
#pragma once

#include "tokenizer/json_file.h"
#include "tokenizer/unigram/unigram_tokenizer.h"

namespace finetune {

// Reads a tokenizer.json whose model is Unigram.
UnigramDefinition read_unigram_tokenizer_json(const JsonFile& file);

// How a tokenizer class numbers the pieces of its sentencepiece model.
// albert, deberta: as stored too, but read as the tokenizer.json that transformers makes of it.
enum class PieceIds { as_stored, albert, deberta, xlm_roberta, camembert };
// By config.json's model_type for ALBERT and DeBERTa; else by tokenizer_class of
// tokenizer_config.json or config.json, else by the latter's model_type.
PieceIds piece_ids_of(const std::filesystem::path& directory);
// The same of a sentencepiece model, whose name may tell: only DeBERTa calls it spm.model.
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

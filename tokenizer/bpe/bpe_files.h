// Byte-level BPE vocabularies of a model directory, as Hugging Face writes them.
#pragma once

#include "tokenizer/bpe/bpe_tokenizer.h"
#include "tokenizer/json_file.h"

namespace finetune {

// Reads a tokenizer.json whose model is BPE. add_prefix_space and trim_offsets of a
// tokenizer_config.json beside it take precedence, as in RobertaTokenizerFast of transformers 4.
BpeDefinition read_bpe_tokenizer_json(const JsonFile& file);

// Reads vocab.json and merges.txt with tokenizer_config.json, special_tokens_map.json and
// added_tokens.json, if they exist: RoBERTa's tokenizer.
BpeDefinition read_vocab_and_merges(const std::filesystem::path& directory);

// Both throw Error(model) that names the file, and for merges.txt also the line.

}  // namespace finetune

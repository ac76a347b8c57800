// Reads the WordPiece files of a model directory, as Hugging Face writes them.
#pragma once

#include "tokenizer/json_file.h"
#include "tokenizer/wordpiece/wordpiece_tokenizer.h"

namespace finetune {

// Reads tokenizer.json. As in BertTokenizerFast of transformers 4, a tokenizer_config.json beside
// it overrides do_lower_case, strip_accents and tokenize_chinese_chars if it states them.
// Truncation and padding in tokenizer.json are ignored.
WordPieceDefinition read_tokenizer_json(const JsonFile& file);

// Reads vocab.txt (one piece per line; line numbers are ids) and, if present,
// tokenizer_config.json, special_tokens_map.json and added_tokens.json. The default is lower case.
WordPieceDefinition read_vocab_txt(const std::filesystem::path& directory);

// Both throw Error(model) with the file's name.

}  // namespace finetune

// WordPiece vocabularies of a model directory, as Hugging Face writes them.
#pragma once

#include "tokenizer/wordpiece/wordpiece_tokenizer.h"

namespace finetune {

// tokenizer.json. Options come from it alone, but for do_lower_case, strip_accents and
// tokenize_chinese_chars where a tokenizer_config.json beside it states them, which then count (as
// BertTokenizerFast of transformers 4 has it). Truncation and padding in it are ignored.
WordPieceDefinition read_tokenizer_json(const std::filesystem::path& directory);

// vocab.txt (one piece a line, its number is its id) with tokenizer_config.json,
// special_tokens_map.json and added_tokens.json where they are there. Without them: lower case.
WordPieceDefinition read_vocab_txt(const std::filesystem::path& directory);

// Both throw Error(model) that names the file.

}  // namespace finetune

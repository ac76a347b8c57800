// A tokenizer on vocabularies of the sentencepiece library (Kudo and Richardson, 2018).
// Text is prepared as by Hugging Face's AlbertTokenizer (transformers 4.57.1, the one that uses the
// library).
#pragma once

#include <filesystem>
#include <memory>

#include "tokenizer/tokenizer.h"

namespace finetune {

// `path` is the model file; do_lower_case, remove_space, keep_accents, the special tokens and added
// tokens come from tokenizer_config.json beside it. A vocabulary with [CLS] and [SEP] has ALBERT's
// defaults (lower case, accents removed); one with <s> and </s> alone leaves text as it is. Ids are
// the library's. Error(model) naming the file, also where ids would be shifted against the library
// (XLM-RoBERTa, CamemBERT, ...).
std::unique_ptr<Tokenizer> load_sentencepiece(const std::filesystem::path& path);

}  // namespace finetune

// A tokenizer for vocabularies of the sentencepiece library (Kudo and Richardson, 2018). Text is
// prepared as in AlbertTokenizer of Hugging Face transformers 4.57.1, which uses the library.
#pragma once

#include <filesystem>
#include <memory>

#include "tokenizer/tokenizer.h"

namespace finetune {

// `path` is the model file; do_lower_case, remove_space, keep_accents, special and added tokens
// come from tokenizer_config.json beside it. A vocabulary with [CLS] and [SEP] gets ALBERT's
// defaults (lower case, accents removed); one that has only <s> and </s> leaves text unchanged. Ids
// are the library's. Error(model) names the file, also for models whose ids are shifted against the
// library's (mBART, BARThez, ...); tokenizer/unigram reads XLM-RoBERTa's and CamemBERT's.
std::unique_ptr<Tokenizer> load_sentencepiece(const std::filesystem::path& path);

}  // namespace finetune

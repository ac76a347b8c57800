// The special tokens around a text and a pair, as the post_processor of tokenizer.json states them.
#pragma once

#include <string>

#include "tokenizer/json_file.h"
#include "tokenizer/special_tokens.h"

namespace finetune {

struct Surroundings {
  std::string cls, sep;
  int32_t separators = 1;  // between the texts of a pair
};

// 2 if a template's pair is <s> A </s></s> B </s>, else 1.
int32_t separators_of_template(const JsonFile& file, const simdjson::dom::object& processor);

// Reads TemplateProcessing. Error(model): it is neither [CLS] A [SEP] B [SEP] nor
// <s> A </s></s> B </s>.
Surroundings read_template_processor(const JsonFile& file, const simdjson::dom::object& processor);

// Reads BertProcessing (1 separator) or RobertaProcessing (2).
Surroundings read_pair_processor(const JsonFile& file, const simdjson::dom::object& processor,
                                 int32_t separators);

// Error(model): nothing surrounds a text.
void require_surroundings(const JsonFile& file, const Surroundings& around);

// Sets the definition's special tokens. `unknown`: the model's own, or -1. Error(model): the
// vocabulary lacks one of `around`.
void set_special_tokens(const SpecialNames& names, const Surroundings& around, int32_t unknown,
                        const std::filesystem::path& path, TokenizerDefinition& definition);

}  // namespace finetune

// The parts of a model directory's tokenizer files that every kind of vocabulary has.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "tokenizer/added_tokens.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/wordpiece/vocabulary.h"

namespace finetune {

struct TokenizerDefinition {
  Vocabulary vocabulary;  // finished; added tokens included
  std::vector<AddedToken> added;
  SpecialTokens special;
  StatedInputs stated;
  std::vector<std::filesystem::path> files;
};

}  // namespace finetune

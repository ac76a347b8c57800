// A text and tokenizer_config.json, then the sentencepiece model, which may hold any bytes.
#include "fuzz/targets/model/tokenizer_checks.h"

namespace finetune::fuzz {
namespace {

void check_sentencepiece(std::string_view input) {
  const auto parts = parts_of(input, 3);
  if (!parts[1].empty()) scratch_file("tokenizer_config.json", parts[1]);
  scratch_file("spiece.model", parts[2]);
  check_tokenizer(*Tokenizer::load(scratch_directory()), parts[0]);
}

const Registration kSentencepieceTarget({.name = "sentencepiece",
                                         .run = check_sentencepiece,
                                         .memory = size_t{256} << 20});

}  // namespace
}  // namespace finetune::fuzz

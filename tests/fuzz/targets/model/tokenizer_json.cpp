// tokenizer.json with tokenizer_config.json, and a text to encode.
#include "fuzz/targets/model/tokenizer_checks.h"

namespace finetune::fuzz {
namespace {

void check_tokenizer_json(std::string_view input) {
  const auto parts = parts_of(input, 3);
  scratch_file("tokenizer.json", parts[0]);
  if (!parts[1].empty()) scratch_file("tokenizer_config.json", parts[1]);
  check_tokenizer(*Tokenizer::load(scratch_directory()), parts[2]);
}

// An id may be up to 2^22, and each has a view of its piece.
const Registration kTokenizerJsonTarget({.name = "tokenizer_json",
                                         .run = check_tokenizer_json,
                                         .memory = size_t{256} << 20});

}  // namespace
}  // namespace finetune::fuzz

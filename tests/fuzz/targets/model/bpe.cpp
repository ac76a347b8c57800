// vocab.json and merges.txt with tokenizer_config.json, and a text to encode.
#include "fuzz/targets/model/tokenizer_checks.h"

namespace finetune::fuzz {
namespace {

void check_bpe(std::string_view input) {
  const auto parts = parts_of(input, 4);
  scratch_file("vocab.json", parts[0]);
  scratch_file("merges.txt", parts[1]);
  if (!parts[2].empty()) scratch_file("tokenizer_config.json", parts[2]);
  check_tokenizer(*Tokenizer::load(scratch_directory()), parts[3]);
}

const Registration kBpeTarget({.name = "bpe", .run = check_bpe, .memory = size_t{256} << 20});

}  // namespace
}  // namespace finetune::fuzz

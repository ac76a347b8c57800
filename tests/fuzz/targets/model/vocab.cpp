// vocab.txt with its companions, and a text to encode.
#include "fuzz/targets/model/tokenizer_checks.h"

namespace finetune::fuzz {
namespace {

void check_vocab(std::string_view input) {
  const auto parts = parts_of(input, 5);
  scratch_file("vocab.txt", parts[0]);
  const char* const names[] = {"tokenizer_config.json", "special_tokens_map.json",
                               "added_tokens.json"};
  for (size_t i = 0; i < std::size(names); ++i) {
    if (!parts[i + 1].empty()) scratch_file(names[i], parts[i + 1]);
  }
  check_tokenizer(*Tokenizer::load(scratch_directory()), parts[4]);
}

const Registration kVocabTarget({.name = "vocab", .run = check_vocab, .memory = size_t{256} << 20});

}  // namespace
}  // namespace finetune::fuzz

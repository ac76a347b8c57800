#include "tokenizer/tokenizer.h"

#include "core/error.h"
#include "tokenizer/sentencepiece_tokenizer.h"
#include "tokenizer/wordpiece_files.h"

namespace finetune {

namespace fs = std::filesystem;

std::unique_ptr<Tokenizer> Tokenizer::load(const fs::path& directory) {
  if (!fs::exists(directory)) throw model_error(directory.string(), " does not exist");
  if (!fs::is_directory(directory)) {
    throw model_error(directory.string(), " is not a directory with a vocabulary");
  }
  if (fs::exists(directory / "tokenizer.json")) {
    return std::make_unique<WordPieceTokenizer>(read_tokenizer_json(directory));
  }
  if (fs::exists(directory / "vocab.txt")) {
    return std::make_unique<WordPieceTokenizer>(read_vocab_txt(directory));
  }
  for (const char* name : {"spiece.model", "sentencepiece.bpe.model", "tokenizer.model"}) {
    if (fs::exists(directory / name)) return load_sentencepiece(directory / name);
  }
  throw model_error(directory.string(),
                    " holds no vocabulary: one of tokenizer.json, vocab.txt, spiece.model, "
                    "sentencepiece.bpe.model or tokenizer.model must be there");
}

}  // namespace finetune

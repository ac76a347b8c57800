// Chooses the tokenizer by the files in a model directory.
#include "tokenizer/tokenizer.h"

#include "core/error.h"
#include "core/files/file_kind.h"
#include "tokenizer/sentencepiece/sentencepiece_tokenizer.h"
#include "tokenizer/wordpiece/wordpiece_files.h"

namespace finetune {

namespace fs = std::filesystem;

std::unique_ptr<Tokenizer> Tokenizer::load(const fs::path& directory) {
  const FileKind kind = kind_of(directory, ExitCode::model);
  if (kind == FileKind::absent) throw model_error(printable_path(directory), " does not exist");
  if (kind != FileKind::directory) {
    throw model_error(printable_path(directory), " is not a directory with a vocabulary");
  }
  if (path_exists(directory / "tokenizer.json", ExitCode::model)) {
    return std::make_unique<WordPieceTokenizer>(read_tokenizer_json(directory));
  }
  if (path_exists(directory / "vocab.txt", ExitCode::model)) {
    return std::make_unique<WordPieceTokenizer>(read_vocab_txt(directory));
  }
  for (const char* name : {"spiece.model", "sentencepiece.bpe.model", "tokenizer.model"}) {
    if (path_exists(directory / name, ExitCode::model)) return load_sentencepiece(directory / name);
  }
  throw model_error(directory.string(),
                    " holds no vocabulary: one of tokenizer.json, vocab.txt, spiece.model, "
                    "sentencepiece.bpe.model or tokenizer.model must be there");
}

}  // namespace finetune

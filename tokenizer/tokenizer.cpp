// Chooses the tokenizer by the files in a model directory.
#include "tokenizer/tokenizer.h"

#include "core/error.h"
#include "core/files/file_kind.h"
#include "tokenizer/bpe/bpe_files.h"
#include "tokenizer/json_file.h"
#include "tokenizer/sentencepiece/sentencepiece_tokenizer.h"
#include "tokenizer/wordpiece/wordpiece_files.h"

namespace finetune {

namespace fs = std::filesystem;

namespace {

bool has(const fs::path& directory, const char* name) {
  return path_exists(directory / name, ExitCode::model);
}

// By its model's type, which old files leave out.
std::unique_ptr<Tokenizer> load_tokenizer_json(const fs::path& path) {
  const JsonFile file(path);
  if (const auto model = file.get<simdjson::dom::object>(file.root(), "model")) {
    const auto type = file.get<std::string_view>(*model, "type");
    if (type ? *type == "BPE" : JsonFile::find(*model, "merges").has_value()) {
      return std::make_unique<BpeTokenizer>(read_bpe_tokenizer_json(file));
    }
  }
  return std::make_unique<WordPieceTokenizer>(read_tokenizer_json(file));
}

}  // namespace

std::unique_ptr<Tokenizer> Tokenizer::load(const fs::path& directory) {
  const FileKind kind = kind_of(directory, ExitCode::model);
  if (kind == FileKind::absent) throw model_error(printable_path(directory), " does not exist");
  if (kind != FileKind::directory) {
    throw model_error(printable_path(directory), " is not a directory with a vocabulary");
  }
  if (has(directory, "tokenizer.json")) return load_tokenizer_json(directory / "tokenizer.json");
  if (has(directory, "vocab.txt")) {
    return std::make_unique<WordPieceTokenizer>(read_vocab_txt(directory));
  }
  if (has(directory, "vocab.json") || has(directory, "merges.txt")) {
    return std::make_unique<BpeTokenizer>(read_vocab_and_merges(directory));
  }
  for (const char* name : {"spiece.model", "sentencepiece.bpe.model", "tokenizer.model"}) {
    if (has(directory, name)) return load_sentencepiece(directory / name);
  }
  throw model_error(
      directory.string(),
      " holds no vocabulary: one of tokenizer.json, vocab.txt, vocab.json with "
      "merges.txt, spiece.model, sentencepiece.bpe.model or tokenizer.model must be there");
}

}  // namespace finetune

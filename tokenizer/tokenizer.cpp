// Chooses the tokenizer by the files in a model directory.
#include "tokenizer/tokenizer.h"

#include "core/error.h"
#include "core/files/file_kind.h"
#include "tokenizer/bpe/bpe_files.h"
#include "tokenizer/json_file.h"
#include "tokenizer/sentencepiece/sentencepiece_tokenizer.h"
#include "tokenizer/unigram/unigram_files.h"
#include "tokenizer/wordpiece/wordpiece_files.h"

namespace finetune {

namespace fs = std::filesystem;

namespace {

bool has(const fs::path& directory, const char* name) {
  return path_exists(directory / name, ExitCode::model);
}

// Chooses by the type of the file's model. Old files do not state it.
std::unique_ptr<Tokenizer> load_tokenizer_json(const fs::path& path) {
  const JsonFile file(path);
  if (const auto model = file.get<simdjson::dom::object>(file.root(), "model")) {
    const auto vocabulary = JsonFile::find(*model, "vocab");
    const std::string_view guessed = JsonFile::find(*model, "merges")       ? "BPE"
                                     : vocabulary && vocabulary->is_array() ? "Unigram"
                                                                            : "WordPiece";
    const auto type = file.get<std::string_view>(*model, "type").value_or(guessed);
    if (type == "BPE") return std::make_unique<BpeTokenizer>(read_bpe_tokenizer_json(file));
    if (type == "Unigram") {
      return std::make_unique<UnigramTokenizer>(read_unigram_tokenizer_json(file));
    }
  }
  return std::make_unique<WordPieceTokenizer>(read_tokenizer_json(file));
}

std::unique_ptr<Tokenizer> load_sentencepiece_model(const fs::path& path) {
  const PieceIds ids = piece_ids_of_model(path);
  if (ids == PieceIds::as_stored) return load_sentencepiece(path);
  return std::make_unique<UnigramTokenizer>(read_shifted_sentencepiece(path, ids));
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
  for (const char* name :
       {"spiece.model", "spm.model", "sentencepiece.bpe.model", "tokenizer.model"}) {
    if (has(directory, name)) return load_sentencepiece_model(directory / name);
  }
  throw model_error(directory.string(),
                    " holds no vocabulary: one of tokenizer.json, vocab.txt, vocab.json with "
                    "merges.txt, spiece.model, spm.model, sentencepiece.bpe.model or "
                    "tokenizer.model must be there");
}

}  // namespace finetune

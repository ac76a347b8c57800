// BERT's tokenizer: normalizer, pre-tokenizer and WordPiece of Hugging Face tokenizers 0.22.2 in
// one pass over the bytes. Plain ASCII words go straight to the vocabulary; other text goes through
// BertNormalizer first.
#pragma once

#include <string>

#include "tokenizer/sentencepiece/piece_trie.h"
#include "tokenizer/tokenizer_definition.h"
#include "tokenizer/unicode/bert_normalizer.h"
#include "tokenizer/wordpiece/word_table.h"

namespace finetune {

// The contents of a model directory's WordPiece files (read by wordpiece_files.h).
struct WordPieceDefinition : TokenizerDefinition {
  NormalizerOptions normalizer;
  std::string continuing_prefix = "##";
  int64_t max_input_chars_per_word = 100;
};

class WordPieceTokenizer final : public Tokenizer {
 public:
  explicit WordPieceTokenizer(WordPieceDefinition definition);

  void encode(std::string_view text, TokenBuffer& out) const override;
  int32_t vocabulary_size() const override { return definition_.vocabulary.size(); }
  std::string_view token(int32_t id) const override { return definition_.vocabulary.piece(id); }
  bool continues_word(int32_t id) const override {
    return token(id).starts_with(definition_.continuing_prefix);
  }
  std::vector<std::filesystem::path> files() const override { return definition_.files; }

 private:
  enum ByteClass : uint8_t { kWordByte, kSpaceByte, kPunctuationByte, kOtherByte };
  struct Scratch;

  void build_byte_classes();
  void build_pieces();
  void build_added_tokens();

  // Encodes [begin, end) of the text, which contains no added tokens that are matched in raw text.
  void encode_segment(std::string_view text, uint32_t begin, uint32_t end, Scratch& scratch,
                      TokenBuffer& out) const;
  void encode_ascii_word(std::string_view text, uint32_t begin, uint32_t end,
                         TokenBuffer& out) const;
  void encode_mixed_segment(std::string_view text, uint32_t begin, uint32_t end, Scratch& scratch,
                            TokenBuffer& out) const;
  // Encodes words and punctuation among normalized characters.
  void encode_chars(const NormalizedChar* begin, const NormalizedChar* end, Scratch& scratch,
                    TokenBuffer& out) const;
  void encode_word(const NormalizedChar* begin, const NormalizedChar* end, Scratch& scratch,
                   TokenBuffer& out) const;

  WordPieceDefinition definition_;
  BertNormalizer normalizer_;
  AddedTokenMatcher raw_tokens_;
  AddedTokenMatcher normalized_tokens_;
  WordTable words_;
  PieceTrie initial_;       // pieces at the start of a word
  PieceTrie continuation_;  // pieces inside a word, without their prefix
  ByteClass classes_[256];
  uint8_t lower_[256];       // with lower-casing, if enabled
  uint64_t lower_bits_ = 0;  // 0x20 in every byte if lower-casing is enabled
  int32_t ascii_ids_[128];   // ids of single characters; unk if the vocabulary lacks one
};

}  // namespace finetune

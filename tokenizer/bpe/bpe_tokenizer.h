// The byte-level BPE of RoBERTa and ModernBERT: GPT-2's words, merged by rank.
// Ids and offsets match Hugging Face tokenizers 0.22.2 (ByteLevel, BPE, RobertaProcessing). Most
// words are found whole in a table; the others are merged once and then cached by each thread.
#pragma once

#include <string>
#include <unordered_map>

#include "tokenizer/bpe/merges.h"
#include "tokenizer/bpe/word_splitter.h"
#include "tokenizer/tokenizer_definition.h"
#include "tokenizer/unicode/source_composition.h"
#include "tokenizer/wordpiece/word_table.h"

namespace finetune {

struct BpeDefinition : TokenizerDefinition {
  bpe::MergeTable merges;
  int32_t unknown = -1;            // the model's unk_token; -1: bytes without a token are dropped
  bool fuse_unknown = false;       // neighbouring unknown bytes make one token
  bool ignore_merges = false;      // a word that is in the vocabulary becomes one token
  bool compose = false;            // NFC
  bool add_prefix_space = false;   // a space before each text that does not begin with one
  bool trim_offsets = true;        // offsets omit spaces
  bool trim_keeps_prefix = false;  // ... but include a single space before the first token
};

class BpeTokenizer final : public Tokenizer {
 public:
  explicit BpeTokenizer(BpeDefinition definition);

  void encode(std::string_view text, TokenBuffer& out) const override;
  int32_t vocabulary_size() const override { return definition_.vocabulary.size(); }
  std::string_view token(int32_t id) const override { return definition_.vocabulary.piece(id); }
  bool continues_word(int32_t id) const override;
  std::vector<std::filesystem::path> files() const override { return definition_.files; }

 private:
  struct Scratch;
  struct Target;

  void build_words();
  void build_added_tokens();

  void encode_valid(std::string_view text, TokenBuffer& out) const;
  // Encodes [begin, end) of the text, which contains no added tokens that are matched in raw text.
  void encode_segment(size_t begin, size_t end, Target& target) const;
  // Both encode the text between added tokens: unchanged text, and text that NFC composed.
  void encode_plain(size_t begin, size_t end, Target& target) const;
  void encode_sourced(const unicode::SourcedText& from, size_t begin, size_t end,
                      Target& target) const;
  // Encodes a word and calls push(id, begin, end) for each token, in bytes of the word.
  template <typename Push>
  void encode_word(std::string_view word, Scratch& scratch, Push&& push) const;
  void merge_word(std::string_view word, std::vector<bpe::Symbol>& symbols) const;
  void push_token(std::string_view word, int32_t id, uint32_t begin, uint32_t end,
                  Target& target) const;
  void push_added(std::string_view content, int32_t id, uint32_t begin, uint32_t end,
                  Target& target) const;
  void push_trimmed(int32_t id, uint32_t begin, uint32_t end, size_t leading, size_t trailing,
                    Target& target) const;

  BpeDefinition definition_;
  uint32_t instance_;  // tells this tokenizer's words in a thread's cache from those of others
  bpe::WordSplitter splitter_;
  AddedTokenMatcher raw_tokens_;
  AddedTokenMatcher normalized_tokens_;
  int32_t byte_ids_[256];
  WordTable words_;                                 // short words that are one token
  std::unordered_map<std::string, int32_t> whole_;  // with ignore_merges: every word
  std::vector<bool> is_added_;                      // by id
};

}  // namespace finetune

// The Unigram tokenization of XLM-RoBERTa and CamemBERT. Ids and offsets match Hugging Face
// tokenizers 0.22.2 and 0.23.3 (Precompiled, Strip, Replace, Metaspace, Unigram). Text that
// normalization does not change is cut into words at spaces, and each thread caches the words'
// tokens. Only the text around other characters goes through all steps.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tokenizer/tokenizer_definition.h"
#include "tokenizer/unigram/charsmap_normalizer.h"
#include "tokenizer/unigram/unigram_model.h"

namespace finetune {

// One step of normalization.
struct UnigramStep {
  enum class Kind {
    join_quotes,
    join_white_space,
    compose,
    decompose,
    strip_accents,
    lowercase,
    charsmap,
    strip,
    join_spaces
  };
  Kind kind;
  bool left = false, right = false;  // strip: white space at the beginning, at the end
  // join_spaces, join_white_space: the replacement for two and more of them, or for a line break or
  // tab. join_quotes: two of this character become a double quote.
  std::string content;

  // The steps of ALBERT and DeBERTa that come before the map, or without one.
  bool prepares() const { return kind < Kind::charsmap; }
};

struct UnigramDefinition : TokenizerDefinition {
  unigram::UnigramModel model;
  std::optional<CharsMap> charsmap;  // used by the step "charsmap"
  std::vector<UnigramStep> steps;
  bool split_white_space = false;  // words end at white space; else a word's mark is a space
  bool split_punctuation = false;  // each punctuation character is a text by itself
  enum class Prefix { always, first, never };
  Prefix prefix = Prefix::always;  // which texts get a mark before them
};

class UnigramTokenizer final : public Tokenizer {
 public:
  explicit UnigramTokenizer(UnigramDefinition definition);

  void encode(std::string_view text, TokenBuffer& out) const override;
  int32_t vocabulary_size() const override { return definition_.vocabulary.size(); }
  std::string_view token(int32_t id) const override { return definition_.vocabulary.piece(id); }
  bool continues_word(int32_t id) const override;
  std::vector<std::filesystem::path> files() const override { return definition_.files; }

 private:
  struct Scratch;
  struct Target;

  void build_added_tokens();
  bool can_skip_normalization() const;

  void encode_valid(std::string_view text, TokenBuffer& out) const;
  // Encodes [begin, end) of the text, which contains no added tokens that are matched in raw text.
  void encode_segment(size_t begin, size_t end, Target& target) const;
  // Returns where the first character from `at` on is that normalization may change, or `end`.
  size_t skip_unchanged(std::string_view text, size_t at, size_t end) const;
  void encode_unchanged(size_t begin, size_t end, uint32_t mark_begin, uint32_t mark_end,
                        Target& target) const;
  // Encodes from the spaces at `at` to the end of a word behind them, or further if words depend on
  // each other. Returns where it ends.
  size_t encode_changed(size_t segment, size_t at, size_t end, Target& target) const;
  // Returns whether characters removed at the beginning shift the sources of all others.
  bool normalize(std::string_view text, size_t begin, size_t end, bool is_first, bool is_last,
                 Scratch& scratch, unicode::SourcedText& out) const;
  bool can_end_here(const unicode::SourcedText& text) const;
  // Encodes normalized text between added tokens: inserts marks, then encodes word by word.
  void encode_piece(const unicode::SourcedText& from, size_t begin, size_t end,
                    Target& target) const;
  void encode_marked(const unicode::SourcedText& marked, Target& target) const;
  // Encodes a mark and `word`; calls push(id, begin, end) for each token, in bytes of both.
  template <typename Push>
  void encode_word(std::string_view word, Scratch& scratch, Push&& push) const;

  UnigramDefinition definition_;
  uint32_t instance_;
  unigram::CharFlags flags_;
  bool skips_normalization_ = false;
  bool joins_spaces_ = false;
  AddedTokenMatcher raw_tokens_;
  AddedTokenMatcher normalized_tokens_;
  std::vector<bool> is_added_;  // by id
};

}  // namespace finetune

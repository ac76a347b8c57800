// Converts text to token ids with offsets. Independent of tasks, data files and tensors.
//
// WordPiece, BPE and Unigram vocabularies behave as in Hugging Face tokenizers 0.22.2. *.model
// vocabularies behave as in the sentencepiece library, except for XLM-RoBERTa's and CamemBERT's,
// which behave as the tokenizer.json that transformers 4.57 converts them to.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace finetune {

// Tokens in flat arrays; encode() appends. Offsets are bytes of the input text. An input has at
// most 4 GiB - 1 bytes.
struct TokenBuffer {
  std::vector<int32_t> ids;
  std::vector<uint32_t> begins;
  std::vector<uint32_t> ends;

  size_t size() const { return ids.size(); }
  void clear() {
    ids.clear();
    begins.clear();
    ends.clear();
  }
};

// The special tokens around one text or a pair: [CLS] A [SEP] and [CLS] A [SEP] B [SEP]. Token type
// 0 up to and including the first [SEP], 1 after it.
struct SpecialTokens {
  int32_t cls = -1;
  int32_t sep = -1;
  int32_t pad = -1;
  int32_t unk = -1;
  int32_t mask = -1;       // -1: there is none
  int32_t separators = 1;  // between the texts of a pair: RoBERTa has 2

  // Special tokens that are added to one text, and to a pair.
  int64_t around_single() const { return 2; }
  int64_t around_pair() const { return 2 + separators; }
};

// What tokenizer_config.json states about a model's inputs.
struct StatedInputs {
  int64_t model_max_length = -1;    // -1: not stated
  std::optional<bool> token_types;  // whether "model_input_names" lists token_type_ids
  bool cuts_left = false;           // "truncation_side" is "left"
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Loads from a model directory. tokenizer.json takes precedence over vocab.txt, or vocab.json and
  // merges.txt, with tokenizer_config.json; then come spiece.model, sentencepiece.bpe.model and
  // tokenizer.model. Error(model) names the file.
  static std::unique_ptr<Tokenizer> load(const std::filesystem::path& directory);

  // Appends the tokens of `text` without surrounding special tokens. Special and added tokens
  // written in the text become their ids, as in Hugging Face. Bytes that are not UTF-8 count as
  // U+FFFD (maximal subparts). Thread-safe.
  virtual void encode(std::string_view text, TokenBuffer& out) const = 0;

  virtual int32_t vocabulary_size() const = 0;           // largest id + 1, added tokens included
  virtual std::string_view token(int32_t id) const = 0;  // "" for an id without a token
  // Returns whether the piece continues the previous piece's word.
  virtual bool continues_word(int32_t id) const = 0;
  // the files that an export must copy
  virtual std::vector<std::filesystem::path> files() const = 0;
  const SpecialTokens& special() const { return special_; }
  const StatedInputs& stated() const { return stated_; }

 protected:
  SpecialTokens special_;
  StatedInputs stated_;
};

}  // namespace finetune

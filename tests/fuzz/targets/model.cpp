// Targets of readers of a model's texts: config.json, vocabularies, tokenizers, n-grams.
#include <memory>
#include <string_view>

#include "core/sha256.h"
#include "fuzz/target.h"
#include "model/config.h"
#include "tasks/classification/ngram_mix/ngram_file.h"
#include "tasks/classification/ngram_mix/ngram_mix.h"
#include "tasks/registry.h"
#include "tokenizer/tokenizer.h"

namespace finetune::fuzz {
namespace {

// Properties of a loaded tokenizer, whatever its files contain.
void check_encoding(const Tokenizer& tokenizer, std::string_view text) {
  TokenBuffer tokens;
  tokenizer.encode(text, tokens);
  require(tokens.begins.size() == tokens.size() && tokens.ends.size() == tokens.size(),
          "offsets are not one a token");
  for (size_t i = 0; i < tokens.size(); ++i) {
    require(tokens.ids[i] >= 0 && tokens.ids[i] < tokenizer.vocabulary_size(), "id ", tokens.ids[i],
            " of ", tokenizer.vocabulary_size());
    require(tokens.begins[i] <= tokens.ends[i] && tokens.ends[i] <= text.size(), "offsets ",
            tokens.begins[i], " to ", tokens.ends[i], " in a text of ", text.size());
  }
}

void check_tokenizer(const Tokenizer& tokenizer, std::string_view text) {
  const int32_t size = tokenizer.vocabulary_size();
  const SpecialTokens& special = tokenizer.special();
  for (int32_t id : {special.cls, special.sep}) {
    require(id >= 0 && id < size, "special token ", id, " of ", size);
  }
  require(special.unk >= -1 && special.unk < size, "unknown token ", special.unk, " of ", size);
  require(special.pad >= -1 && special.pad < size, "padding ", special.pad, " of ", size);
  for (int32_t id : {-1, 0, size - 1, size}) tokenizer.token(id);
  require(!tokenizer.token(special.cls).empty(), "[CLS] has no text");
  check_encoding(tokenizer, text);
  check_encoding(tokenizer,
                 "COFFEE 12,50 [SEP] r\xC3\xA9sum\xC3\xA9 \xE4\xB8\xAD\xE6\x96\x87 a\xFF");
}

// vocab.txt with its companions, and a text to encode.
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

// tokenizer.json with tokenizer_config.json, and a text to encode.
void check_tokenizer_json(std::string_view input) {
  const auto parts = parts_of(input, 3);
  scratch_file("tokenizer.json", parts[0]);
  if (!parts[1].empty()) scratch_file("tokenizer_config.json", parts[1]);
  check_tokenizer(*Tokenizer::load(scratch_directory()), parts[2]);
}

// An id may be up to 2^22, and each has a view of its piece.
const Registration kTokenizerJsonTarget({.name = "tokenizer_json",
                                         .run = check_tokenizer_json,
                                         .memory = size_t{256} << 20});

// vocab.json and merges.txt with tokenizer_config.json, and a text to encode.
void check_bpe(std::string_view input) {
  const auto parts = parts_of(input, 4);
  scratch_file("vocab.json", parts[0]);
  scratch_file("merges.txt", parts[1]);
  if (!parts[2].empty()) scratch_file("tokenizer_config.json", parts[2]);
  check_tokenizer(*Tokenizer::load(scratch_directory()), parts[3]);
}

const Registration kBpeTarget({.name = "bpe", .run = check_bpe, .memory = size_t{256} << 20});

// A text and tokenizer_config.json, then the sentencepiece model, which may hold any bytes.
void check_sentencepiece(std::string_view input) {
  const auto parts = parts_of(input, 3);
  if (!parts[1].empty()) scratch_file("tokenizer_config.json", parts[1]);
  scratch_file("spiece.model", parts[2]);
  check_tokenizer(*Tokenizer::load(scratch_directory()), parts[0]);
}

const Registration kSentencepieceTarget({.name = "sentencepiece",
                                         .run = check_sentencepiece,
                                         .memory = size_t{256} << 20});

// config.json: the model's shape, and the options that a task stores in it.
void check_config(std::string_view input) {
  const EncoderConfig config = parse_config(input, "config.json");
  require(config.vocab_size > 0 && config.hidden_size > 0 && config.num_hidden_layers > 0 &&
              config.intermediate_size > 0 && config.max_length() > 0 &&
              config.type_vocab_size >= 0,
          "a size that is not positive");
  require(config.head_size() * config.num_attention_heads == config.hidden_size,
          "heads do not divide the hidden size");
  require(config.pad_token_id >= 0 && config.pad_token_id < config.vocab_size,
          "the padding is outside the vocabulary");
  for (HeadKind kind : {HeadKind::sequence, HeadKind::token}) {
    require(config.head_dropout(kind) >= 0 && config.head_dropout(kind) < 1,
            "dropout is not a probability");
  }
  require(int64_t(config.labels.size()) <= kMostLabels, "more labels than there may be");
  require(config.source_json == input, "the text is not kept");
  for (const TaskTraits& task : all_tasks()) {
    const TaskOptions options = task.stored_options(config);
    require(options.max_length >= 0, "a stored length is negative");
  }
}

const Registration kConfigJsonTarget({.name = "config_json", .run = check_config});

// ngrams.bin: the linear model beside a classifier's weights, behind its sum.
constexpr size_t kSum = 64;

void check_ngram_file(std::string_view input) {
  StoredNgrams stored = read_ngram_file(input, "ngrams.bin");
  const std::string again = ngram_file_of(stored.model);
  require(again == input || input.size() > kMostNgramFileBytes, "a file is written in two ways");
  NgramScorer scorer(std::move(stored.model));
  const std::string text(input.substr(0, 200));
  const std::vector<std::string> texts{text, "red apple pie", text};
  for (float margin : scorer.margins_of(texts)) require(margin == margin, "a margin is no number");
}

void mend_sum(const std::string&, std::string& changed) {
  if (changed.size() < kSum) return;
  changed.resize(changed.size() - kSum);
  changed += sha256_of(changed);
}

const Registration kNgramFileTarget({.name = "ngram_file",
                                     .run = check_ngram_file,
                                     .mend = mend_sum});

}  // namespace
}  // namespace finetune::fuzz
